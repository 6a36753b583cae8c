--- The rewrites that run, one a buffer, from the request to the one message that says how it ended.

local apply = require('specd.apply')
local changes = require('specd.changes')
local marks = require('specd.marks')
local say = require('specd.say').say

local M = {}

---@class specd.Job
---@field bufnr integer
---@field client_id? integer nil while the server is being started
---@field name? string the server's name of it, once it is known
---@field text string progress, for status lines

---@type table<integer,specd.Job> by buffer
local running = {}
---@type table<integer,specd.Follower> by buffer
local followers = {}

local CANCEL_PATIENCE_MS = 6000 -- an edit that is under way may take four seconds

local levels = { info = vim.log.levels.INFO, warning = vim.log.levels.WARN, error = vim.log.levels.ERROR }

---@param message string
---@param level? integer
function M.say(message, level)
  say('specd: ' .. message:gsub('specd%.revert', ':SpecdRevert'), level)
end

---@param bufnr integer
---@return specd.Job?
function M.of(bufnr)
  return running[bufnr]
end

---@return specd.Job[]
function M.all()
  return vim.tbl_values(running)
end

---@param bufnr integer
local function follow(bufnr)
  local is_due = false
  followers[bufnr] = followers[bufnr]
    or changes.follow(bufnr, function()
      if not is_due then
        is_due = true
        vim.schedule(function()
          is_due = false
          if vim.api.nvim_buf_is_loaded(bufnr) and not marks.remove_changed(bufnr) and not running[bufnr] then
            M._unfollow(bufnr)
          end
        end)
      end
    end)
end

---@param bufnr integer
function M._unfollow(bufnr)
  if followers[bufnr] then
    followers[bufnr].stop()
    followers[bufnr] = nil
  end
end

--- Take up a rewrite of the buffer, before there is a server for it. One that is under way is told to the user.
---@param bufnr integer
---@param line integer where progress is shown until the region is known
---@return specd.Job?
function M.open(bufnr, line)
  if running[bufnr] then
    M.say('a rewrite of this buffer is under way; :SpecdCancel ends it', vim.log.levels.WARN)
    return nil
  end
  local job = { bufnr = bufnr, text = 'starting' } ---@type specd.Job
  running[bufnr] = job
  marks.show_progress(bufnr, 'specd: ' .. job.text, line)
  return job
end

---@param job specd.Job
function M.is_open(job)
  return running[job.bufnr] == job
end

--- It comes to nothing, and that need not be told.
---@param job specd.Job
function M.drop(job)
  running[job.bufnr] = nil
  marks.hide_region(job.bufnr)
end

--- Ask the server for it. params: of `specd/rewrite`.
---@param job specd.Job
---@param client vim.lsp.Client
---@param params table
function M.start(job, client, params)
  local bufnr = job.bufnr
  job.client_id = client.id
  apply.separate(bufnr)
  marks.dismiss(bufnr)
  M._unfollow(bufnr)
  follow(bufnr)
  local sent = client:request('specd/rewrite', params, function(err, result)
    if running[bufnr] ~= job then
      return
    end
    local message = err and err.message or result.message
    M.finish(job, message, not err and levels[result.severity] or vim.log.levels.ERROR)
  end, bufnr)
  if not sent then
    M.finish(job, 'the language server has ended; the next :SpecdRewrite starts it again', vim.log.levels.ERROR)
  end
end

---@param job specd.Job
---@param message string
---@param level integer
function M.finish(job, message, level)
  M.drop(job)
  apply.separate(job.bufnr)
  M.say(message, level)
end

--- The job was cancelled; if its server does not say so in time, it hangs, and the next rewrite gets another one.
---@param job specd.Job
---@param client vim.lsp.Client
function M.expect_end(job, client)
  vim.defer_fn(function()
    if M.is_open(job) then
      local text = 'cancelled; the language server did not answer and was ended, the next :SpecdRewrite starts another; '
      M.finish(job, text .. 'what it has changed so far stays', vim.log.levels.ERROR)
      client:stop(true)
    end
  end, CANCEL_PATIENCE_MS)
end

--- The server has chosen what it rewrites (`specd/region`).
---@param params table
function M.on_region(params)
  local bufnr = apply.buffer_of(params.uri)
  local job, follower = running[bufnr], followers[bufnr]
  if not bufnr or not job or not follower then
    return -- it was closed meanwhile
  end
  job.name = params.job
  local at = follower.lines
  marks.show_region(bufnr, at(params.version, params.startLine), at(params.version, params.endLine))
end

--- A hunk is in the buffer, or out of it again (`specd/hunk`).
---@param params table
function M.on_hunk(params)
  local bufnr = apply.buffer_of(params.uri)
  if not bufnr then
    return
  end
  marks.remove_hunk(bufnr, params.number)
  if params.removed or params.version > vim.lsp.util.buf_versions[bufnr] then
    return -- a version that is yet to come is one from before the buffer was read anew
  end
  follow(bufnr)
  local at = followers[bufnr].lines
  local first, last = at(params.version, params.startLine), at(params.version, params.endLine)
  marks.add_hunk(bufnr, params.number, first, last, M._lines(bufnr, params.oldText))
end

--- A text that the server knows, as the buffer's lines.
---@param bufnr integer
---@param text string
---@return string[]
function M._lines(bufnr, text)
  local ends = { dos = '\r\n', unix = '\n', mac = '\r' }
  local lines = vim.split(text, ends[vim.bo[bufnr].fileformat], { plain = true })
  if lines[#lines] == '' then
    table.remove(lines)
  end
  return lines
end

---@param client_id integer
---@param token string
---@return specd.Job?
local function job_of(client_id, token)
  local name = token:match('^specd%-(.+)$')
  local unnamed = {} ---@type specd.Job[]
  for _, job in pairs(running) do
    if job.client_id == client_id then
      if job.name == name then
        return job
      end
      unnamed[#unnamed + 1] = not job.name and job or nil
    end
  end
  return #unnamed == 1 and unnamed[1] or nil
end

local group = vim.api.nvim_create_augroup('specd', {})

vim.api.nvim_create_autocmd('LspProgress', {
  group = group,
  desc = 'specd: progress beside the region',
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    local value = event.data.params.value
    if not client or client.name ~= 'specd' or value.kind == 'end' then
      return
    end
    local job = job_of(client.id, tostring(event.data.params.token))
    if job then
      job.text = value.message or job.text
      marks.show_progress(job.bufnr, 'specd: ' .. job.text)
      vim.api.nvim_exec_autocmds('User', { pattern = 'SpecdProgress', modeline = false })
    end
  end,
})

vim.api.nvim_create_autocmd('LspDetach', {
  group = group,
  desc = 'specd: a rewrite ends with its server',
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if not client or client.name ~= 'specd' then
      return
    end
    local job = running[event.buf]
    if job and job.client_id == client.id and client:is_stopped() then -- else it answers, that the document was closed
      M.finish(job, 'the language server has gone; what it has changed so far stays', vim.log.levels.WARN)
    end
    local other = require('specd.client').of(event.buf)
    if not other or other.id == client.id then -- else a newer server has the buffer
      M._unfollow(event.buf)
      marks.dismiss(event.buf)
    end
  end,
})

return M
