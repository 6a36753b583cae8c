-- Commands and <Plug> maps. Nothing else is loaded before one of them is used, or a server starts.

if vim.g.loaded_specd then
  return
end
vim.g.loaded_specd = true
if vim.fn.has('nvim-0.11') == 0 then
  vim.notify('specd needs Neovim 0.11 or newer', vim.log.levels.ERROR)
  return
end

---@param name string
---@param call fun(specd: table, opts: vim.api.keyset.create_user_command.command_args)
---@param opts vim.api.keyset.user_command
local function command(name, call, opts)
  vim.api.nvim_create_user_command(name, function(given)
    call(require('specd'), given)
  end, opts)
end

---@param given vim.api.keyset.create_user_command.command_args
---@return specd.Where
local function where(given)
  if given.bang then
    return 'file'
  end
  if given.range == 1 and vim.fn.foldclosed(given.line1) > 0 then -- two addresses Neovim widens itself
    return { vim.fn.foldclosed(given.line1), vim.fn.foldclosedend(given.line1) }
  end
  return given.range > 0 and { given.line1, given.line2 } or 'cursor'
end

command('SpecdRewrite', function(specd, given)
  specd.rewrite(where(given), given.args)
end, {
  range = true,
  bang = true,
  nargs = '*',
  complete = function(lead, line)
    return require('specd').complete(lead, line)
  end,
  desc = 'Rewrite the lines, the definition around the cursor, or (!) the file',
})
command('SpecdAgain', function(specd, given)
  specd.again(where(given))
end, { range = true, bang = true, desc = 'Rewrite by the last instruction' })
command('SpecdCancel', function(specd, given)
  specd.cancel(given.bang)
end, { bang = true, desc = 'Cancel the rewrite of this buffer, or (!) all' })
command('SpecdRevert', function(specd)
  specd.revert()
end, { desc = 'Take back what the last rewrite of this buffer changed' })
command('SpecdDiff', function(specd)
  specd.toggle_old()
end, { desc = 'Show or hide the old text of the marked hunks' })
command('SpecdDismiss', function(specd)
  specd.dismiss()
end, { desc = 'Remove the marks of hunks' })
command('SpecdLog', function(specd)
  specd.log()
end, { desc = "Show specd's log" })
command('SpecdInfo', function(specd)
  specd.info()
end, { desc = 'Show what specd does' })

---@param name string
---@param call string a function of require('specd')
---@param desc string
local function plug(name, call, desc)
  vim.keymap.set('n', '<Plug>(specd-' .. name .. ')', function()
    require('specd')[call]()
  end, { desc = desc })
end

vim.keymap.set('n', '<Plug>(specd-rewrite)', '<Cmd>SpecdRewrite<CR>', { desc = 'Rewrite the definition here' })
vim.keymap.set('x', '<Plug>(specd-rewrite)', ':SpecdRewrite<CR>', { silent = true, desc = 'Rewrite the lines' })
vim.keymap.set('n', '<Plug>(specd-again)', '<Cmd>SpecdAgain<CR>', { desc = 'Rewrite by the last instruction' })
vim.keymap.set('x', '<Plug>(specd-again)', ':SpecdAgain<CR>', { silent = true, desc = 'The same for the lines' })
vim.keymap.set('n', '<Plug>(specd-file)', '<Cmd>SpecdRewrite!<CR>', { desc = 'Rewrite the file' })
vim.keymap.set('n', '<Plug>(specd-operator)', function()
  return require('specd').operator()
end, { expr = true, desc = 'Rewrite the lines of a motion' })
plug('cancel', 'cancel', 'Cancel the rewrite')
plug('revert', 'revert', 'Take the rewrite back')
plug('next-hunk', 'next_hunk', 'Next hunk')
plug('previous-hunk', 'previous_hunk', 'Previous hunk')
plug('revert-hunk', 'revert_hunk', 'Take the hunk under the cursor back')
plug('diff', 'toggle_old', 'Show or hide the old text of hunks')
plug('dismiss', 'dismiss', 'Remove the marks of hunks')
