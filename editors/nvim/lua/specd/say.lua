--- Tells the user something, without a key of theirs being lost.

local M = {}

local highlights = { [vim.log.levels.WARN] = 'WarningMsg', [vim.log.levels.ERROR] = 'ErrorMsg' }

--- Cells that a message may have before Neovim stops and waits for a key.
---@return integer
local function room()
  return vim.v.echospace + math.max(vim.o.cmdheight - 1, 0) * vim.o.columns
end

---@param message string one line
---@param cells integer
---@return string
local function shortened(message, cells)
  local count = vim.fn.strcharlen(message)
  while count > 0 and vim.fn.strdisplaywidth(vim.fn.strcharpart(message, 0, count)) > cells - 1 do
    count = count - 1
  end
  return vim.fn.strcharpart(message, 0, count) .. '…'
end

--- Show a message, and keep it in |:messages|. A rewrite ends at any time, so it often ends while the user types: were
--- the message too wide for the last line, Neovim's own `vim.notify` would wait there, and the key that is typed next
--- would be gone. Then only what has room is shown. A `vim.notify` that the user has put in its place gets all of it.
---@param message string
---@param level? integer
function M.say(message, level)
  level = level or vim.log.levels.INFO
  message = message:gsub('%s*\n%s*', ' ')
  local is_stock = vim.startswith(debug.getinfo(vim.notify, 'S').source, '@vim/')
  if not is_stock or vim.in_fast_event() or vim.fn.strdisplaywidth(message) <= room() then
    return vim.notify(message, level, { title = 'specd' })
  end
  local highlight = highlights[level] or 'None'
  local lines = { 'echohl ' .. highlight, 'echomsg ' .. vim.fn.string(message), 'echohl None', 'redraw' }
  vim.api.nvim_exec2(table.concat(lines, '\n'), {}) -- `redraw`: there is nothing to wait for
  vim.schedule(function() -- else the mode is drawn over it
    vim.api.nvim_echo({ { shortened(message, room()), highlight } }, false, {})
  end)
end

return M
