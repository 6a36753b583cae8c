--- specd in Neovim: rewrites code where you point at it. `setup` is optional; `vim.lsp.enable('specd')` does. See
--- |specd.txt|.

local settings = require('specd.settings')

local M = {}

--- Take over settings and, unless `enable` is false, attach the server to the file types of the settings. May be called
--- again.
---@param opts? table see |specd-settings|
function M.setup(opts)
  settings.current, settings.problems = settings.read(opts)
  for _, problem in ipairs(settings.problems) do
    vim.notify('specd: ' .. problem, vim.log.levels.ERROR, { title = 'specd' })
  end
  local current = settings.current
  vim.lsp.config('specd', { cmd = current.cmd, filetypes = current.filetypes, trace = current.trace })
  if current.enable or vim.lsp.is_enabled('specd') then
    vim.lsp.enable('specd', current.enable)
  end
end

---@param bufnr integer
---@param target specd.Target
---@param instruction string
---@param more? { version?: integer, comment?: integer }
local function start(bufnr, target, instruction, more)
  local jobs = require('specd.jobs')
  require('specd.prompt').remember(instruction)
  local job = jobs.open(bufnr, target:lines() or 0)
  if not job then
    return target:release()
  end
  require('specd.client').ensure(bufnr, function(client, reason)
    local is_held = target:is_held()
    local is_gone = is_held and target:is_gone()
    local range = is_held and target:range() or nil
    target:release()
    if not jobs.is_open(job) then
      return -- cancelled while the server was being started
    elseif not is_held then
      return jobs.drop(job)
    elseif is_gone then
      return jobs.finish(job, 'the lines that you asked for are gone; nothing was changed', vim.log.levels.ERROR)
    elseif not client then
      return jobs.finish(job, reason --[[@as string]], vim.log.levels.ERROR)
    end
    jobs.start(
      job,
      client,
      vim.tbl_extend('force', {
        uri = vim.uri_from_bufnr(bufnr),
        instruction = instruction,
        range = range,
        version = vim.lsp.util.buf_versions[bufnr],
        readonly = vim.bo[bufnr].readonly or not vim.bo[bufnr].modifiable,
      }, more or {})
    )
  end)
end

---@param bufnr integer
---@return boolean
local function is_refused(bufnr)
  local jobs = require('specd.jobs')
  local reason = jobs.of(bufnr) and 'a rewrite of this buffer is under way; :SpecdCancel ends it'
    or require('specd.client').unfit(bufnr)
    or require('specd.apply').refusal(bufnr)
  if reason then
    jobs.say(reason, vim.log.levels.WARN)
  end
  return reason and true or false
end

--- Rewrite a part of the current buffer. Without an instruction the user is asked.
---@param where? specd.Where 'cursor' (the definition around it; the default), 'file', or the first and the last line
---@param instruction? string
function M.rewrite(where, instruction)
  local bufnr = vim.api.nvim_get_current_buf()
  if is_refused(bufnr) then
    return
  end
  local targets = require('specd.target')
  local problem = targets.problem(bufnr, where or 'cursor')
  if not problem and instruction ~= nil and type(instruction) ~= 'string' then
    problem = 'the instruction is a string, not a ' .. type(instruction)
  end
  if problem then
    return require('specd.jobs').say(problem, vim.log.levels.ERROR)
  end
  local target = targets.new(bufnr, where or 'cursor')
  instruction = vim.trim(instruction or '')
  if instruction ~= '' then
    return start(bufnr, target, instruction)
  end
  require('specd.prompt').ask(bufnr, target, function(entered)
    if entered and target:is_held() then
      start(bufnr, target, entered)
    else
      target:release()
    end
  end)
end

--- Run a code action of the server's: what it asks for, in the version of the text that the menu was made for.
---@param bufnr integer
---@param asked { range?: lsp.Range, instruction: string, comment?: integer }
---@param version? integer
function M.rewrite_asked(bufnr, asked, version)
  if is_refused(bufnr) then
    return
  end
  local range = asked.range
  local first = range and range.start.line + 1
  local target = require('specd.target').new(bufnr, first and { first, first } or 'file')
  if vim.trim(asked.instruction) ~= '' then
    local more = { range = range, version = version, comment = asked.comment }
    return start(bufnr, target, asked.instruction, more)
  end
  target:release()
  local where = 'file' ---@type specd.Where
  if range then
    local stop = range['end']
    local last = (stop.character > 0 or stop.line == range.start.line) and stop.line + 1 or stop.line
    local is_empty = vim.deep_equal(range.start, stop)
    last = math.min(last, vim.api.nvim_buf_line_count(bufnr))
    where = is_empty and 'cursor' or { math.min(first, last), last }
  end
  vim.api.nvim_buf_call(bufnr, function()
    M.rewrite(where)
  end)
end

--- Rewrite by the last instruction.
---@param where? specd.Where
function M.again(where)
  local last = require('specd.prompt').history[1]
  if not last then
    return require('specd.jobs').say('there is no instruction yet; :SpecdRewrite asks for one', vim.log.levels.WARN)
  end
  M.rewrite(where, last)
end

--- Cancel the rewrite of this buffer, or of all. What it has changed so far stays.
---@param all? boolean
function M.cancel(all)
  local jobs = require('specd.jobs')
  local job = jobs.of(vim.api.nvim_get_current_buf())
  local found = all and jobs.all() or { job }
  if #found == 0 then
    local others = #jobs.all()
    local hint = others > 0 and ('; :SpecdCancel! ends the %d elsewhere'):format(others) or ''
    return jobs.say('no rewrite is under way here' .. hint)
  end
  for _, one in ipairs(found) do
    jobs.cancel(one)
  end
end

--- Take back what the last rewrite of this buffer changed, except where it was changed since.
function M.revert()
  require('specd.hunks').revert()
end

function M.next_hunk()
  require('specd.hunks').jump(1)
end

function M.previous_hunk()
  require('specd.hunks').jump(-1)
end

--- Take the hunk under the cursor back.
function M.revert_hunk()
  require('specd.hunks').revert_one()
end

---@return boolean
local function has_hunks()
  local count = #require('specd.marks').hunks(vim.api.nvim_get_current_buf())
  if count == 0 then
    require('specd.jobs').say('no hunk is marked here')
  end
  return count > 0
end

--- Show the old text of the marked hunks, or hide it.
function M.toggle_old()
  if has_hunks() then
    require('specd.marks').toggle_old(vim.api.nvim_get_current_buf())
  end
end

--- Remove the marks of hunks; their text stays.
function M.dismiss()
  if has_hunks() then
    require('specd.marks').dismiss(vim.api.nvim_get_current_buf())
  end
end

--- For `expr` maps: an operator that asks for the instruction.
---@return string
function M.operator()
  vim.go.operatorfunc = "v:lua.require'specd'._operate"
  return 'g@'
end

function M._operate()
  M.rewrite({ vim.api.nvim_buf_get_mark(0, '[')[1], vim.api.nvim_buf_get_mark(0, ']')[1] })
end

--- What runs in this buffer, for a status line; empty if nothing does.
---@return string
function M.status()
  local job = require('specd.jobs').of(vim.api.nvim_get_current_buf())
  return job and ('specd: ' .. job.text) or ''
end

---@param lead string
---@param line string the command line
---@return string[]
function M.complete(lead, line)
  local typed = line:match('SpecdRewrite!?%s+(.*)$') or lead
  local head = #typed - #lead
  return vim.tbl_map(function(one)
    return one:sub(head + 1)
  end, require('specd.prompt').complete(typed))
end

function M.log()
  require('specd.log').open()
end

function M.info()
  require('specd.info').open()
end

return M
