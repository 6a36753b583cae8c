--- The rewrites that run, one a buffer, from the request to the one message that says how it ended.

local apply = require('specd.apply')
local changes = require('specd.changes')
local ending = require('specd.ending')
local kept = require('specd.kept')
local marks = require('specd.marks')
local say = require('specd.say').say
local sync = require('specd.sync')

local M = {}

---@class specd.Job
---@field bufnr integer
---@field client_id? integer nil while the server is being started
---@field name? string the server's name of it, once it is known
---@field text string progress, for status lines
---@field why? string it is cancelled for this reason
---@field is_cut? boolean the buffer was read anew under it, or closed
---@field had_hunks? boolean there were some in the buffer then

---@type table<integer,specd.Job> by buffer
local running = {}
---@type table<integer,specd.Follower> by buffer
local followers = {}

local CANCEL_PATIENCE_MS = 6000 -- an edit that is under way may take four seconds
local SILENCE_MS = 2000 -- then the user is told that it is waited for

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

  local function tidy()
    is_due = false
    if vim.api.nvim_buf_is_loaded(bufnr) then
      marks.renew(bufnr)
      if not running[bufnr] and not kept.has_any(bufnr) then
        M._unfollow(bufnr)
      end
    end
  end

  followers[bufnr] = followers[bufnr]
    or changes.follow(bufnr, function(change)
      kept.follow(bufnr, change)
      if not is_due then
        is_due = true
        vim.schedule(tidy)
      end
    end, function()
      local job = running[bufnr]
      if job then
        local _, known = kept.count(bufnr, job.name)
        job.is_cut, job.had_hunks = true, known > 0
      end
      followers[bufnr] = nil
      kept.forget(bufnr)
      marks.dismiss(bufnr)
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

--- Ask the server for it. One whose text is not the buffer's says so; then it is told, and asked again.
---@param job specd.Job
---@param client vim.lsp.Client
---@param params table
---@param is_again? boolean
local function ask(job, client, params, is_again)
  local bufnr = job.bufnr
  params.sha256 = sync.sha256(bufnr)
  local sent = client:request('specd/rewrite', params, function(err, result)
    if running[bufnr] ~= job then
      return
    end
    local outcome = result and result.outcome
    if outcome == 'unsynced' and vim.api.nvim_buf_is_loaded(bufnr) and not is_again then
      local is_old = params.version ~= vim.lsp.util.buf_versions[bufnr] -- the lines were counted in another text
      params.version = sync.open_again(bufnr, client)
      if not is_old then
        return ask(job, client, params, true)
      end
    end
    local message = ending.told(job, err and err.message or result.message, outcome)
    M.finish(job, message, not err and levels[result.severity] or vim.log.levels.ERROR)
  end, bufnr)
  if not sent then
    M.finish(job, 'the language server has ended; the next :SpecdRewrite starts it again', vim.log.levels.ERROR)
  end
end

--- Ask the server for it. params: of `specd/rewrite`.
---@param job specd.Job
---@param client vim.lsp.Client
---@param params table
function M.start(job, client, params)
  job.client_id = client.id
  apply.separate(job.bufnr)
  marks.dismiss(job.bufnr)
  M._unfollow(job.bufnr)
  follow(job.bufnr)
  ask(job, client, params)
end

---@param job specd.Job
---@param message string
---@param level integer
function M.finish(job, message, level)
  M.drop(job)
  apply.separate(job.bufnr)
  M.say(message, level)
end

--- Cancel a rewrite. What it has changed so far stays.
---@param job specd.Job
---@param why? string the user's wish if not given
function M.cancel(job, why)
  job.why = job.why or why
  local client = job.client_id and vim.lsp.get_client_by_id(job.client_id)
  if not job.client_id then
    M.finish(job, ('cancelled (%s); nothing was changed'):format(why or 'by the user'), vim.log.levels.INFO)
  elseif client then
    local arguments = { job.name and { job = job.name } or { uri = vim.uri_from_bufnr(job.bufnr) } }
    client:request('workspace/executeCommand', { command = 'specd.cancel', arguments = arguments }, function() end)
    M._expect_end(job, client)
  end
end

--- The job was cancelled; if its server does not say so in time, it hangs, and the next rewrite gets another one.
---@param job specd.Job
---@param client vim.lsp.Client
function M._expect_end(job, client)
  vim.defer_fn(function()
    if M.is_open(job) then
      M.say('cancelling: the language server has not answered yet')
    end
  end, SILENCE_MS)
  vim.defer_fn(function()
    if M.is_open(job) then
      local text = 'cancelled; the language server did not answer and was ended (:SpecdRewrite starts another); '
      M.finish(job, text .. ending.left(job), vim.log.levels.ERROR)
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
---@param client_id integer
function M.on_hunk(params, client_id)
  local bufnr = apply.buffer_of(params.uri)
  if not bufnr then
    return
  end
  marks.remove_hunk(bufnr, params.job, params.number)
  kept.remove(bufnr, params.job, params.number)
  local is_cut = running[bufnr] and running[bufnr].is_cut
  if params.removed or is_cut or params.version > vim.lsp.util.buf_versions[bufnr] then
    return -- a version that is yet to come is one from before the buffer was read anew
  end
  follow(bufnr)
  local first, last, is_untouched = followers[bufnr].place(params.version, params.startLine, params.endLine)
  local hunk = { job = params.job, number = params.number, first = first, last = last } ---@type specd.Hunk
  hunk.old = M._lines(bufnr, params.oldText)
  hunk.new = is_untouched and vim.api.nvim_buf_get_lines(bufnr, first, last, false) or nil
  if kept.put(bufnr, client_id, hunk) then
    marks.dismiss(bufnr, params.job)
    if is_untouched then
      marks.add_hunk(bufnr, hunk)
    end
  end
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

require('specd.events')

return M
