--- Makes the server's edits. Unlike Neovim's own handler it keeps to the version that an edit counts in, says the truth
--- about what it did, and makes the hunks of one rewrite one undo step.

local text_edits = require('specd.text_edits')

local M = {}

--- By buffer: the text's version after our last hunk, if the next one may join its undo step.
---@type table<integer,integer>
local joins = {}

--- The next edit of the buffer is an undo step of its own.
---@param bufnr integer
function M.separate(bufnr)
  joins[bufnr] = nil
end

--- The loaded buffer that was told to the server by this URI.
---@param uri string
---@return integer?
function M.buffer_of(uri)
  return vim.iter(vim.api.nvim_list_bufs()):find(function(bufnr)
    return vim.api.nvim_buf_is_loaded(bufnr) and vim.uri_from_bufnr(bufnr) == uri
  end)
end

--- What is changed next is an undo step of its own.
---@param bufnr integer
function M.end_undo_step(bufnr)
  vim.api.nvim_buf_call(bufnr, function()
    vim.cmd('let &l:undolevels = &l:undolevels')
  end)
end

--- What is changed next joins the undo step of our latest edit, if nothing was changed since.
---@param bufnr integer
function M.begin_undo_step(bufnr)
  if joins[bufnr] == vim.lsp.util.buf_versions[bufnr] then
    -- It fails right after an undo; then the step stands for itself.
    pcall(vim.api.nvim_buf_call, bufnr, function()
      vim.cmd('silent! undojoin')
    end)
  else
    M.end_undo_step(bufnr)
  end
end

--- What is typed next in this insert, or done by this command, is the user's undo step, not ours.
---@param bufnr integer
function M.leave_undo_step(bufnr)
  if bufnr == vim.api.nvim_get_current_buf() and vim.api.nvim_get_mode().mode:match('^[iRc]') then
    M.end_undo_step(bufnr)
  end
end

--- Why the buffer may not be changed; nil if it may.
---@param bufnr integer
---@return string?
function M.fixed(bufnr)
  if not vim.bo[bufnr].modifiable then
    return 'the buffer is not modifiable'
  end
  return vim.bo[bufnr].readonly and 'the buffer is read-only' or nil
end

--- The same for who wants to change it, with what to do.
---@param bufnr integer
---@return string?
function M.refusal(bufnr)
  local options = { not vim.bo[bufnr].modifiable and 'modifiable' or nil }
  if vim.bo[bufnr].readonly then
    table.insert(options, 1, 'noreadonly')
  end
  local reason = M.fixed(bufnr)
  return reason and ('%s; change that first (:set %s)'):format(reason, table.concat(options, ' '))
end

--- Why a change would be seen by nobody, the server and our marks included; nil if it would be.
---@return string?
function M.unseen()
  if vim.o.inccommand ~= '' and vim.api.nvim_get_mode().mode == 'c' and vim.fn.getcmdtype() == ':' then
    return "a command is being typed, whose preview ('inccommand') hides changes from the server"
  end
end

---@param change lsp.TextDocumentEdit
---@param encoding 'utf-8'|'utf-16'|'utf-32'
---@return string? reason why it was not made
local function make(change, encoding)
  local document = change.textDocument
  local bufnr = M.buffer_of(document.uri)
  if not bufnr then
    return 'the buffer is gone'
  end
  local reason = M.fixed(bufnr) or M.unseen()
  if reason then
    return reason
  end
  local version = vim.lsp.util.buf_versions[bufnr]
  if type(document.version) == 'number' and document.version ~= version then
    return ('the text changed (version %d, not %d)'):format(version, document.version)
  end
  M.begin_undo_step(bufnr)
  text_edits.make(change.edits, bufnr, encoding)
  joins[bufnr] = vim.lsp.util.buf_versions[bufnr]
  M.leave_undo_step(bufnr)
end

---@param params lsp.ApplyWorkspaceEditParams
---@param encoding 'utf-8'|'utf-16'|'utf-32'
---@return lsp.ApplyWorkspaceEditResult
function M.apply(params, encoding)
  for at, change in ipairs(params.edit.documentChanges or {}) do
    local ok, reason = pcall(make, change, encoding)
    if reason then
      reason = ok and reason or tostring(reason):gsub('^.-:%d+: ', '')
      return { applied = false, failureReason = reason, failedChange = at - 1 }
    end
  end
  return { applied = true }
end

return M
