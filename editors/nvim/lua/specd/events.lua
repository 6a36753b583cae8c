--- What Neovim tells of servers and buffers, brought to the rewrites that it concerns.

local api = vim.api
local group = api.nvim_create_augroup('specd', {})

---@param client_id integer
---@param token string
---@return specd.Job?
local function job_of(client_id, token)
  local name = token:match('^specd%-(.+)$')
  local unnamed = {} ---@type specd.Job[]
  for _, job in pairs(require('specd.jobs').all()) do
    if job.client_id == client_id then
      if job.name == name then
        return job
      end
      unnamed[#unnamed + 1] = not job.name and job or nil
    end
  end
  return #unnamed == 1 and unnamed[1] or nil
end

api.nvim_create_autocmd('LspProgress', {
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
      require('specd.marks').show_progress(job.bufnr, 'specd: ' .. job.text)
      api.nvim_exec_autocmds('User', { pattern = 'SpecdProgress', modeline = false })
    end
  end,
})

api.nvim_create_autocmd('LspDetach', {
  group = group,
  desc = 'specd: a rewrite ends with its server',
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if not client or client.name ~= 'specd' then
      return
    end
    require('specd.kept').orphan(event.buf, client.id)
    local jobs = require('specd.jobs')
    local job = jobs.of(event.buf)
    if not job or job.client_id ~= client.id then
      return
    elseif client:is_stopped() then
      local left = require('specd.ending').left(job)
      jobs.finish(job, 'the language server has gone; ' .. left, vim.log.levels.WARN)
    else -- it answers, that the document was closed
      job.why = job.why or 'the language server was detached from the buffer'
    end
  end,
})

api.nvim_create_autocmd('OptionSet', {
  group = group,
  pattern = { 'modifiable', 'readonly' },
  desc = 'specd: a buffer that may no longer be changed is not',
  callback = function()
    local bufnr = api.nvim_get_current_buf()
    local jobs = require('specd.jobs')
    local job, reason = jobs.of(bufnr), require('specd.apply').fixed(bufnr)
    if job and reason and not job.why then
      jobs.cancel(job, reason .. ' now')
    end
  end,
})

-- While the preview of a command is shown Neovim tells nobody of changes, so that no server would learn what became of
-- an edit, and each would take the next change for one of another text.
local previewed ---@type {option:string,level:integer}? what 'inccommand' was, and where the command line was entered

api.nvim_create_autocmd('CmdlineEnter', {
  group = group,
  pattern = ':',
  desc = "specd: while a rewrite is under way, or is taken back, there is no 'inccommand'",
  callback = function()
    local is_written = #require('specd.jobs').all() > 0 or require('specd.hunks').is_reverting()
    if not previewed and vim.o.inccommand ~= '' and is_written then
      previewed = { option = vim.o.inccommand, level = vim.v.event.cmdlevel }
      vim.o.inccommand = ''
    end
  end,
})

api.nvim_create_autocmd('CmdlineLeave', {
  group = group,
  pattern = ':',
  desc = "specd: 'inccommand' is as it was",
  callback = function()
    if previewed and vim.v.event.cmdlevel <= previewed.level then
      vim.o.inccommand = previewed.option
      previewed = nil
    end
  end,
})
