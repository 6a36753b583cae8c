--- What the server sends, and the commands of its code actions, brought to those who know what to do.

local M = {}

---@param params { message: string, type: integer }
local function show(params)
  local levels = { vim.log.levels.ERROR, vim.log.levels.WARN }
  require('specd.log').write(params.type, params.message)
  require('specd.say').say(params.message, levels[params.type])
end

---@type table<string,lsp.Handler>
M.handlers = {
  ['workspace/applyEdit'] = function(_, params, ctx)
    local client = assert(vim.lsp.get_client_by_id(ctx.client_id))
    return require('specd.apply').apply(params, client.offset_encoding)
  end,
  ['window/showMessage'] = function(_, params)
    show(params)
  end,
  ['window/logMessage'] = function(_, params)
    require('specd.log').write(params.type, params.message)
  end,
  ['$/logTrace'] = function(_, params)
    local rest = params.verbose and (' (' .. params.verbose .. ')') or ''
    require('specd.log').write('trace', params.message .. rest)
  end,
  ['specd/region'] = function(_, params)
    require('specd.jobs').on_region(params)
  end,
  ['specd/hunk'] = function(_, params, ctx)
    require('specd.jobs').on_hunk(params, ctx.client_id)
  end,
}

---@type table<string,fun(command:lsp.Command,ctx:table)>
M.commands = {
  -- Of the code-action menu. It is run as :SpecdRewrite is, so that it looks and can be cancelled alike.
  ['specd.rewrite'] = function(command, ctx)
    local asked = command.arguments[1]
    require('specd').rewrite_asked(ctx.bufnr, asked, ctx.version)
  end,
}

local group = vim.api.nvim_create_augroup('specd.sync', {})

-- Neovim tells a server of a buffer's new name when it is written, and calls it by the new one at once.
local old_names = {} ---@type table<integer,string> buffer to URI
vim.api.nvim_create_autocmd('BufFilePre', {
  group = group,
  desc = 'specd: a buffer may get another name',
  callback = function(event)
    old_names[event.buf] = vim.uri_from_bufnr(event.buf)
  end,
})
vim.api.nvim_create_autocmd('BufFilePost', {
  group = group,
  desc = 'specd: the buffer of the old name is closed, and opened by its new one',
  callback = function(event)
    local client = require('specd.client').of(event.buf)
    local uri = old_names[event.buf]
    old_names[event.buf] = nil
    if not client or not uri or uri == vim.uri_from_bufnr(event.buf) then
      return
    end
    local job = require('specd.jobs').of(event.buf)
    if job then
      job.why = job.why or 'the buffer got another name'
    end
    client:notify('textDocument/didClose', { textDocument = { uri = uri } })
    vim.lsp.buf_detach_client(event.buf, client.id) -- it closes one of the new name too, which nobody knows
    vim.lsp.buf_attach_client(event.buf, client.id)
  end,
})

-- Neovim tells a server of changed lines only, so that a text whose line ends have changed is another one there.
vim.api.nvim_create_autocmd('OptionSet', {
  group = group,
  pattern = { 'fileformat', 'endofline' },
  desc = 'specd: the server hears of other line ends',
  callback = function()
    local bufnr = vim.api.nvim_get_current_buf()
    local client = require('specd.client').of(bufnr)
    if client then
      local ends = { dos = '\r\n', unix = '\n', mac = '\r' }
      local line_end = ends[vim.bo[bufnr].fileformat]
      local lines = vim.api.nvim_buf_get_lines(bufnr, 0, -1, true)
      local text = table.concat(lines, line_end) .. (vim.bo[bufnr].endofline and line_end or '')
      client:notify('textDocument/didChange', {
        textDocument = { uri = vim.uri_from_bufnr(bufnr), version = vim.lsp.util.buf_versions[bufnr] },
        contentChanges = { { text = text } },
      })
    end
  end,
})

return M
