--- Keeps what the language server takes for a buffer's text what the buffer holds.
---
--- Neovim tells a server of changes, but not of other line ends, and of another name late. And it may go deaf: its
--- listener leaves a buffer at the first change that comes while no client is attached, and is never put there again,
--- since nobody notes that it left. Clients that are attached later hear of no change; here ours does.

local M = {}

local api = vim.api

local ENDS = { dos = '\r\n', unix = '\n', mac = '\r' }

---@type table<integer,integer> buffers that are listened to, and how many lines each had after its last change
local counts = {}

---@param bufnr integer
---@return string
local function line_end(bufnr)
  return ENDS[vim.bo[bufnr].fileformat]
end

--- The buffer's text as Neovim tells it to servers.
---@param bufnr integer
---@return string
local function text_of(bufnr)
  local lines = api.nvim_buf_get_lines(bufnr, 0, -1, true)
  return table.concat(lines, line_end(bufnr)) .. (vim.bo[bufnr].endofline and line_end(bufnr) or '')
end

--- For `specd/rewrite`, whose server compares it with what it has: 1 ms for 5,000 lines. nil for a text with a NUL,
--- which is no string for Vim's functions.
---@param bufnr integer
---@return string?
function M.sha256(bufnr)
  local text = text_of(bufnr)
  return not text:find('\0', 1, true) and vim.fn.sha256(text) or nil
end

---@param bufnr integer
---@param client vim.lsp.Client
---@param change lsp.TextDocumentContentChangeEvent
local function tell(bufnr, client, change)
  client:notify('textDocument/didChange', {
    textDocument = { uri = vim.uri_from_bufnr(bufnr), version = vim.lsp.util.buf_versions[bufnr] },
    contentChanges = { change },
  })
end

--- Tell the server of the buffer and its text as if it were opened now. What its jobs wrote can then be taken back from
--- here only.
---@param bufnr integer
---@param client vim.lsp.Client
---@return integer version
function M.open_again(bufnr, client)
  local version = api.nvim_buf_get_changedtick(bufnr)
  vim.lsp.util.buf_versions[bufnr] = version
  client:notify('textDocument/didOpen', {
    textDocument = {
      uri = vim.uri_from_bufnr(bufnr),
      languageId = client.get_language_id(bufnr, vim.bo[bufnr].filetype),
      version = version,
      text = text_of(bufnr),
    },
  })
  require('specd.kept').orphan(bufnr, client.id)
  return version
end

--- Lines [first, last) became [first, new_last), and Neovim has not told it.
---@param bufnr integer
---@param client vim.lsp.Client
---@param count integer lines of the buffer before
---@param first integer
---@param last integer
---@param new_last integer
local function tell_lines(bufnr, client, count, first, last, new_last)
  local is_plain = vim.bo[bufnr].endofline and count + new_last - last == api.nvim_buf_line_count(bufnr)
  if not is_plain then -- all were deleted, which leaves one that is empty, or the last one has no end
    return tell(bufnr, client, { text = text_of(bufnr) })
  end
  local lines = api.nvim_buf_get_lines(bufnr, first, new_last, true)
  lines[#lines + 1] = ''
  tell(bufnr, client, {
    range = { start = { line = first, character = 0 }, ['end'] = { line = last, character = 0 } },
    text = table.concat(lines, line_end(bufnr)),
  })
end

--- Hear of the buffer's changes after Neovim's own listener, if there is one.
---@param bufnr integer
local function listen(bufnr)
  if counts[bufnr] then
    return
  end
  counts[bufnr] = api.nvim_buf_line_count(bufnr)
  local versions = vim.lsp.util.buf_versions
  api.nvim_buf_attach(bufnr, false, {
    on_lines = function(_, _, version, first, last, new_last)
      local before = counts[bufnr]
      counts[bufnr] = api.nvim_buf_line_count(bufnr)
      local client = require('specd.client').of(bufnr)
      if client and client.initialized and versions[bufnr] ~= version then
        versions[bufnr] = version
        tell_lines(bufnr, client, before, first, last, new_last)
      end
    end,
    on_reload = function()
      counts[bufnr] = api.nvim_buf_line_count(bufnr)
      local client = require('specd.client').of(bufnr)
      if client and client.initialized then -- once more, if Neovim has done it
        M.open_again(bufnr, client)
      end
    end,
    on_detach = function()
      counts[bufnr] = nil
      local client = require('specd.client').of(bufnr)
      if client then -- Neovim has not
        vim.lsp.buf_detach_client(bufnr, client.id)
      end
    end,
  })
end

local group = api.nvim_create_augroup('specd.sync', {})

api.nvim_create_autocmd('LspAttach', {
  group = group,
  desc = 'specd: the server hears of changes that Neovim does not tell',
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if client and client.name == 'specd' then
      listen(event.buf)
    end
  end,
})

-- Neovim tells a server of a buffer's new name when it is written, and calls it by the new one at once.
local old_names = {} ---@type table<integer,string> buffer to URI
api.nvim_create_autocmd('BufFilePre', {
  group = group,
  desc = 'specd: a buffer may get another name',
  callback = function(event)
    old_names[event.buf] = vim.uri_from_bufnr(event.buf)
  end,
})
api.nvim_create_autocmd('BufFilePost', {
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

api.nvim_create_autocmd('OptionSet', {
  group = group,
  pattern = { 'fileformat', 'endofline' },
  desc = 'specd: the server hears of other line ends',
  callback = function()
    local bufnr = api.nvim_get_current_buf()
    local client = require('specd.client').of(bufnr)
    if client then
      tell(bufnr, client, { text = text_of(bufnr) })
    end
  end,
})

return M
