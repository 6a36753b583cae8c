--- :checkhealth specd

local M = {}

M.timeout_ms = 30000 -- `specd doctor` loads torch

local health = vim.health

---@param cmd string[]
---@param input? string
---@return { code: integer, out: string }
local function run(cmd, input)
  local ok, done = pcall(function()
    return vim.system(cmd, { text = true, timeout = M.timeout_ms, stdin = input }):wait()
  end)
  if not ok then
    return { code = 127, out = tostring(done) }
  elseif not done or done.code == 124 then -- nil: a child of its own still holds its output
    return { code = 124, out = ('no answer in %g s'):format(M.timeout_ms / 1000) }
  end
  return { code = done.code, out = vim.trim(done.code == 0 and done.stdout or (done.stderr or '') .. (done.stdout or '')) }
end

---@param word string[] how `specd` is run
---@param ... string
local function specd(word, ...)
  return run(vim.list_extend(vim.list_slice(word), { ... }))
end

local function check_editor()
  health.start('specd: editor')
  if vim.fn.has('nvim-0.11') == 1 then
    health.ok('Neovim ' .. tostring(vim.version()))
  else
    health.error('Neovim 0.11 or newer is needed', { 'this is ' .. tostring(vim.version()) })
  end
  local settings = require('specd.settings')
  for _, problem in ipairs(settings.problems) do
    health.error(problem, { 'change it where you call require("specd").setup' })
  end
  if vim.lsp.is_enabled('specd') then
    health.ok("the server is enabled; it attaches to: " .. table.concat(vim.lsp.config.specd.filetypes or { 'all' }, ', '))
  else
    health.warn('the server is not enabled, so the code-action menu lacks it; :SpecdRewrite works', {
      "vim.lsp.enable('specd'), or require('specd').setup()",
    })
  end
  local clients = vim.lsp.get_clients({ name = 'specd' })
  for _, client in ipairs(clients) do
    local info = client.server_info or {}
    local buffers = require('specd.info').buffers(client)
    health.ok(('client %d: server %s, %s'):format(client.id, info.version or '?', buffers))
    if client.flags.debounce_text_changes ~= 0 then
      health.warn('flags.debounce_text_changes is not 0, so hunks are refused while you type', {
        "leave it out of vim.lsp.config('specd', ...)",
      })
    end
  end
end

---@param message table
---@return string as a language server is sent it
local function framed(message)
  local body = vim.json.encode(vim.tbl_extend('error', message, { jsonrpc = '2.0' }))
  return ('Content-Length: %d\r\n\r\n%s'):format(#body, body)
end

--- Whether the command is a language server: it is greeted, and told to end.
---@param cmd string[]
local function check_server(cmd)
  local params = { processId = vim.NIL, rootUri = vim.NIL, capabilities = vim.empty_dict() }
  params.initializationOptions = { warm = false }
  local greeting = framed({ id = 1, method = 'initialize', params = params })
  local answer = run(cmd, greeting .. framed({ id = 2, method = 'shutdown' }) .. framed({ method = 'exit' }))
  local name = table.concat(cmd, ' ')
  if answer.code == 0 and answer.out:find('"result"', 1, true) then
    health.ok(('`%s` answers as a language server'):format(name))
  else
    local reason = answer.out ~= '' and answer.out or ('it ended with code %d, without a word'):format(answer.code)
    health.error(('`%s` does not answer as a language server'):format(name), { reason, 'see |specd-cmd|' })
  end
end

---@return string[]? word how `specd` is run
local function check_program()
  health.start('specd: program')
  local cmd = (vim.lsp.config.specd or {}).cmd
  if type(cmd) ~= 'table' then
    health.info('the server is started by a function; the program is not checked')
    return nil
  end
  if vim.fn.executable(cmd[1]) == 0 then
    health.error(('the program %q is not found'):format(cmd[1]), {
      'install specd, so that it is on PATH of Neovim',
      "or name it: require('specd').setup{ cmd = { '/path/to/specd', 'lsp' } }",
    })
    return nil
  end
  local word = vim.list_slice(cmd, 1, math.max(1, #cmd - 1))
  local version = specd(word, '--version')
  if version.code ~= 0 then
    health.error(('`%s --version` fails'):format(table.concat(word, ' ')), { version.out })
    return nil
  end
  check_server(cmd)
  if not vim.startswith(version.out, 'specd ') then
    health.warn(("`%s --version` is not specd's, so daemon and machine are not checked"):format(table.concat(word, ' ')))
    return nil
  end
  health.ok(version.out .. ' at ' .. vim.fn.exepath(cmd[1]))
  return word
end

---@param word string[]
local function check_daemon(word)
  health.start('specd: daemon')
  local answer = specd(word, 'status', '--json')
  local ok, status = pcall(vim.json.decode, answer.out, { luanil = { object = true } })
  if not ok or type(status) ~= 'table' then
    health.error((answer.out:gsub('^specd: ', ''))) -- one runs, and does not answer
    return
  elseif not status.pid then
    local problem = status.problem or ''
    if problem == '' then
      health.info('none runs; the next rewrite starts one')
    else
      health.error('none runs, and none can be started: ' .. problem)
    end
    return
  end
  for _, line in ipairs(require('specd.info').daemon_lines(status)) do
    (line:match('^problem') and health.warn or health.ok)(line)
  end
end

---@param word string[]
local function check_machine(word)
  health.start('specd: machine (specd doctor)')
  local answer = specd(word, 'doctor', '--json')
  local ok, findings = pcall(vim.json.decode, answer.out)
  if not ok or type(findings) ~= 'table' then
    health.error('`specd doctor` fails', { answer.out })
    return
  end
  local say = { ok = health.ok, warn = health.warn, bad = health.error }
  for _, finding in ipairs(findings) do
    (say[finding.level] or health.info)(finding.topic .. ': ' .. finding.text)
  end
end

--- Maps of ours that another map hides, or makes wait.
local function check_maps()
  health.start('specd: maps and log')
  local count = 0
  for _, mode in ipairs({ 'n', 'x' }) do
    local maps = vim.api.nvim_get_keymap(mode)
    for _, map in ipairs(maps) do
      local rhs = map.rhs or ''
      if not map.lhs:match('^<Plug>') and (rhs:match('<Plug>%(specd') or rhs:match('Specd%u')) then
        count = count + 1
        M._check_map(mode, map.lhs, maps)
      end
    end
  end
  if count == 0 then
    health.info('nothing is mapped; see :help specd-maps')
  end
  health.ok('log: ' .. require('specd.log').path)
end

---@param mode string
---@param lhs string
---@param maps vim.api.keyset.get_keymap[]
function M._check_map(mode, lhs, maps)
  local clashes = {} ---@type string[]
  for _, other in ipairs(maps) do
    if #other.lhs > #lhs and vim.startswith(other.lhs, lhs) then
      clashes[#clashes + 1] = ("waits 'timeoutlen' for %s"):format(other.lhs)
    end
  end
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    for _, other in ipairs(vim.api.nvim_buf_is_loaded(bufnr) and vim.api.nvim_buf_get_keymap(bufnr, mode) or {}) do
      if other.lhs == lhs and not (other.rhs or ''):match('[Ss]pecd') then
        clashes[#clashes + 1] = ('is hidden in %s by a map of that buffer'):format(vim.api.nvim_buf_get_name(bufnr))
      end
    end
  end
  if #clashes > 0 then
    health.warn(('%s (mode %s) %s'):format(lhs, mode, table.concat(clashes, '; ')), { 'choose other keys' })
  else
    health.ok(('%s (mode %s)'):format(lhs, mode))
  end
end

function M.check()
  check_editor()
  local word = check_program()
  if word then
    check_daemon(word)
    check_machine(word)
  end
  check_maps()
end

return M
