--- The client of a buffer: the one that is attached, or one that is started now.

local M = {}

local POLL_MS = 25

--- The client of a buffer. One that is being ended may be there for a while; it does not count.
---@param bufnr integer
---@return vim.lsp.Client?
function M.of(bufnr)
  return vim.iter(vim.lsp.get_clients({ bufnr = bufnr, name = 'specd' })):find(function(client)
    return not client:is_stopped()
  end)
end

--- Why this buffer's text cannot be told to a server; nil if it can.
---@param bufnr integer
---@return string?
function M.unfit(bufnr)
  if vim.bo[bufnr].buftype ~= '' then
    return 'this buffer is not a file; open one'
  end
  if vim.api.nvim_buf_get_name(bufnr) == '' then
    return 'the buffer has no name, so an edit could not find it again; give it one first (:file NAME)'
  end
  if vim.fn.isdirectory(vim.api.nvim_buf_get_name(bufnr)) == 1 then
    return 'this buffer is a folder; open a file'
  end
end

--- Why no server can be started; nil if one can.
---@return string?
local function missing()
  local config = vim.lsp.config.specd
  if not config or not config.cmd then
    return "lsp/specd.lua is not in 'runtimepath'; see :checkhealth specd"
  end
  local program = type(config.cmd) == 'table' and config.cmd[1]
  if program and vim.fn.executable(program) == 0 then
    return ('the program %q is not found; install specd (pip install . in a clone of it), or name it in the setting `cmd`'):format(program)
  end
end

--- Calls `done` with the client of `bufnr` as soon as it answers, or with nil and the reason.
---@param bufnr integer
---@param done fun(client?: vim.lsp.Client, reason?: string)
function M.ensure(bufnr, done)
  local client = M.of(bufnr)
  if client then
    return done(client)
  end
  local reason = M.unfit(bufnr) or missing()
  if reason then
    return done(nil, reason)
  end
  local config = vim.deepcopy(vim.lsp.config.specd)
  if type(config.root_dir) ~= 'string' then
    config.root_dir = vim.fs.root(bufnr, config.root_markers or {})
  end
  local id = vim.lsp.start(config, { bufnr = bufnr, reuse_client = config.reuse_client, silent = true })
  if not id then
    return done(nil, 'the language server could not be started; see :checkhealth specd')
  end
  M._wait(bufnr, id, vim.uv.now() + require('specd.settings').current.start_timeout * 1000, done)
end

---@param bufnr integer
---@param id integer
---@param deadline integer
---@param done fun(client?: vim.lsp.Client, reason?: string)
function M._wait(bufnr, id, deadline, done)
  local client = vim.lsp.get_client_by_id(id)
  if not vim.api.nvim_buf_is_loaded(bufnr) then
    return done(nil, 'the buffer was closed')
  end
  if client and client.initialized and client.attached_buffers[bufnr] then
    return done(client)
  end
  if not client or client:is_stopped() then
    return done(nil, 'the language server ended as soon as it was started; see :checkhealth specd')
  end
  if vim.uv.now() > deadline then
    client:stop(true) -- else the next try would be given this one again
    local text = 'the language server did not answer in %g s; try again, raise the setting `start_timeout`, or see '
    return done(nil, text:format(require('specd.settings').current.start_timeout) .. ':checkhealth specd')
  end
  vim.defer_fn(function()
    M._wait(bufnr, id, deadline, done)
  end, POLL_MS)
end

return M
