--- What can be done with hunks that are in the buffer: visit them, take one back, or all of a rewrite.

local apply = require('specd.apply')
local jobs = require('specd.jobs')
local kept = require('specd.kept')
local marks = require('specd.marks')

local M = {}

local REVERT_PATIENCE_MS = 6000 -- an edit that is under way may take four seconds
local SILENCE_MS = 2000 -- then the user is told that it is waited for

local asked = 0 -- reverts that a server has not answered yet

--- Whether a server is about to take something back.
---@return boolean
function M.is_reverting()
  return asked > 0
end

--- Whether the current buffer may not be changed now; then the user is told.
---@return boolean
local function is_fixed()
  local unseen = apply.unseen()
  local reason = apply.refusal(vim.api.nvim_get_current_buf()) or unseen and (unseen .. '; leave it first (<Esc>)')
  if reason then
    jobs.say(reason, vim.log.levels.WARN)
  end
  return reason ~= nil
end

--- Take back what is kept and as it was written; tell the user how many with those that are out `already`.
---@param bufnr integer
---@param already integer
---@param note string
local function revert_here(bufnr, already, note)
  apply.begin_undo_step(bufnr)
  local count, left = kept.take_back(bufnr)
  apply.leave_undo_step(bufnr)
  count = count + already
  if count == 0 and #left == 0 then
    return jobs.say('there is nothing to take back' .. note)
  end
  local message = ('took %d hunk%s back'):format(count, count == 1 and '' or 's')
  if #left > 0 then
    local plural = (#left > 1 or left[1]:find('-', 1, true)) and 's' or ''
    message = ('%s; left line%s %s, which changed since'):format(message, plural, table.concat(left, ', '))
  end
  jobs.say(message .. note, #left > 0 and vim.log.levels.WARN or vim.log.levels.INFO)
end

---@param bufnr integer
---@param err? lsp.ResponseError
---@param result { reverted: integer, refused: string[], message: string }
local function on_reverted(bufnr, err, result)
  if err then
    jobs.say(err.message, vim.log.levels.ERROR)
  elseif #result.refused > 0 and kept.has_any(bufnr) then
    revert_here(bufnr, result.reverted, '') -- what was changed and changed back is the user's to the server, not here
  else
    jobs.say(result.message, #result.refused > 0 and vim.log.levels.WARN or vim.log.levels.INFO)
  end
end

--- Take back what the last rewrite of the current buffer changed, except where it was changed since: by the server that
--- wrote it, or, where that is gone or hangs, from here.
function M.revert()
  if is_fixed() then
    return
  end
  local bufnr = vim.api.nvim_get_current_buf()
  local client = require('specd.client').of(bufnr)
  apply.separate(bufnr)
  if not client or kept.is_ours(bufnr, client) then
    return revert_here(bufnr, 0, '')
  end
  local is_answered = false
  asked = asked + 1
  --- Whether this is the first answer, and there is a buffer to which it matters.
  local function is_heeded()
    local is_first = not is_answered
    asked = asked - (is_first and 1 or 0)
    is_answered = true
    return is_first and vim.api.nvim_buf_is_loaded(bufnr)
  end
  local params = { uri = vim.uri_from_bufnr(bufnr), job = kept.job(bufnr) }
  client:request('specd/revert', params, function(err, result)
    if is_heeded() then
      on_reverted(bufnr, err, result)
    end
  end, bufnr)
  vim.defer_fn(function()
    if not is_answered and vim.api.nvim_buf_is_loaded(bufnr) then
      jobs.say('taking back: the language server has not answered yet')
    end
  end, SILENCE_MS)
  vim.defer_fn(function()
    if is_heeded() then
      local job = jobs.of(bufnr)
      if job and job.client_id == client.id then
        jobs.drop(job)
      end
      client:stop(true)
      revert_here(bufnr, 0, ' (the language server did not answer and was ended)')
    end
  end, REVERT_PATIENCE_MS)
end

--- Take the hunk under the cursor back.
function M.revert_one()
  local bufnr = vim.api.nvim_get_current_buf()
  local line = vim.fn.line('.') - 1
  local hunk = vim.iter(marks.hunks(bufnr)):find(function(one)
    return marks.row(bufnr, one) <= line and line < math.max(one.last, one.first + 1)
  end)
  if not hunk then
    return jobs.say('there is no marked hunk under the cursor')
  elseif not is_fixed() then
    apply.separate(bufnr)
    kept.put_back(bufnr, hunk)
  end
end

---@param rows integer[] where the hunks are, top to bottom
---@param line integer
---@param step 1|-1
---@return integer? which one comes next
local function next_of(rows, line, step)
  for at = step > 0 and 1 or #rows, step > 0 and #rows or 1, step do
    if (rows[at] - line) * step > 0 then
      return at
    end
  end
  if vim.o.wrapscan then
    return step > 0 and 1 or #rows
  end
end

--- Go to the next hunk or the previous one, as often as the count says.
---@param step 1|-1
function M.jump(step)
  local bufnr = vim.api.nvim_get_current_buf()
  local rows = vim.tbl_map(function(hunk)
    return marks.row(bufnr, hunk)
  end, marks.hunks(bufnr))
  if #rows == 0 then
    return jobs.say('no hunk is marked here')
  end
  local line, found = vim.fn.line('.') - 1, nil
  for _ = 1, vim.v.count1 do
    local at = next_of(rows, line, step)
    if not at then
      break
    end
    found, line = at, rows[at]
  end
  if not found then
    return jobs.say(("there is no hunk %s ('nowrapscan')"):format(step > 0 and 'below' or 'above'))
  end
  vim.cmd("normal! m'")
  vim.api.nvim_win_set_cursor(0, { line + 1, 0 })
  vim.cmd('normal! zv^')
  vim.api.nvim_echo({ { ('specd: hunk %d of %d'):format(found, #rows) } }, false, {})
end

return M
