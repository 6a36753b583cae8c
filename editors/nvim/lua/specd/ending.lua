--- How a rewrite's end is told. The server knows what it wrote; what the user did to the buffer meanwhile, and what is
--- left, is seen here.

local kept = require('specd.kept')

local M = {}

-- Of a buffer that was taken from under it: nothing can be said to stay.
local READ = { 'the buffer was read from its file again', 'what was not written is no longer in it' }
local CLOSED = { 'the buffer was closed', 'what was not written went with it' }

local STAYS = '[%d,]+ hunks? applied so far stays?' -- the server's words
local HINT = ' %b()'

---@param job specd.Job
---@return string? nil if nothing is known here
local function left(job)
  local count, known = kept.count(job.bufnr, job.name)
  if known == 0 then
    return nil
  elseif count == 0 then
    return 'nothing of it is left in the buffer'
  elseif count == 1 then
    return '1 hunk applied so far stays (:SpecdRevert takes it back)'
  end
  return ('%d hunks applied so far stay (:SpecdRevert takes them back)'):format(count)
end

--- What is left of a job that came to no end of its own.
---@param job specd.Job
---@return string
function M.left(job)
  return left(job) or 'nothing was changed'
end

--- The server's message, with what it cannot know put right.
---@param job specd.Job
---@param message string
---@param outcome? string
---@return string
function M.told(job, message, outcome)
  if job.is_cut and (outcome or 'cancelled') == 'cancelled' then
    local cut = vim.api.nvim_buf_is_loaded(job.bufnr) and READ or CLOSED
    return ('cancelled (%s); %s'):format(cut[1], job.had_hunks and cut[2] or 'nothing was changed')
  elseif job.why and outcome == 'cancelled' then
    return ('cancelled (%s); %s'):format(job.why, M.left(job))
  end
  local words = left(job)
  local first, last = message:find(STAYS)
  if not words or not first then
    return message
  end
  local _, hint = message:find('^' .. HINT, last + 1)
  return message:sub(1, first - 1) .. words .. message:sub((hint or last) + 1)
end

return M
