--- What `setup` takes, checked key by key. A wrong value is named to the user and its default stands in for it: nobody
--- should lose the plugin over a setting.

local M = {}

---@class specd.Settings
---@field cmd string[] the language server
---@field enable boolean attach it to the file types below by itself
---@field filetypes string[] where to attach; :SpecdRewrite attaches to any file
---@field presets? table<string,string> name and instruction, for the code-action menu; nil: the daemon's
---@field model? string a folder or a name, in place of the daemon's setting
---@field warm boolean start the daemon with the editor
---@field stream 'auto'|'always'|'never' hunks as they come, or one edit at the end
---@field start_timeout number seconds that the server may take to start
---@field apply_timeout number seconds that Neovim may take to answer an edit
---@field trace 'off'|'messages'|'verbose' what the log tells of each job
---@field region boolean highlight what is being rewritten
---@field progress boolean show progress beside it
---@field hunks boolean mark what has changed
---@field log_size integer KiB at which the log starts anew

---@type specd.Settings
M.defaults = {
  cmd = { 'specd', 'lsp' },
  enable = true,
  -- stylua: ignore
  filetypes = {
    'bash', 'c', 'clojure', 'cmake', 'cpp', 'cs', 'css', 'cuda', 'dart', 'dockerfile', 'elixir', 'elm', 'erlang',
    'fish', 'fortran', 'go', 'haskell', 'html', 'java', 'javascript', 'javascriptreact', 'json', 'jsonc', 'julia',
    'kotlin', 'lua', 'make', 'markdown', 'matlab', 'nim', 'nix', 'objc', 'ocaml', 'perl', 'php', 'proto', 'python',
    'r', 'ruby', 'rust', 'scala', 'scss', 'sh', 'sql', 'svelte', 'swift', 'terraform', 'tex', 'toml', 'typescript',
    'typescriptreact', 'vim', 'vue', 'xml', 'yaml', 'zig', 'zsh',
  },
  presets = nil,
  model = nil,
  warm = true,
  stream = 'auto',
  start_timeout = 20,
  apply_timeout = 3,
  trace = 'off',
  region = true,
  progress = true,
  hunks = true,
  log_size = 1024,
}

---@type specd.Settings
M.current = vim.deepcopy(M.defaults)

--- What was wrong with what `setup` was last given, for :checkhealth.
---@type string[]
M.problems = {}

---@param value any
local function is_strings(value)
  if not vim.islist(value) or #value == 0 then
    return false
  end
  return vim.iter(value):all(function(one)
    return type(one) == 'string' and one ~= ''
  end)
end

---@param value any
local function is_presets(value)
  if type(value) ~= 'table' or (vim.islist(value) and #value > 0) then
    return false
  end
  return vim.iter(value):all(function(name, text)
    return type(name) == 'string' and type(text) == 'string' and vim.trim(text) ~= ''
  end)
end

---@param least number
local function is_seconds_from(least)
  return function(value)
    return type(value) == 'number' and value >= least and value <= 600
  end
end

---@param value any
local function is_size(value)
  return type(value) == 'number' and value >= 1 and value % 1 == 0
end

---@param kind type
local function is(kind)
  return function(value)
    return type(value) == kind and value ~= ''
  end
end

---@param ... string
local function one_of(...)
  local words = { ... }
  return function(value)
    return vim.list_contains(words, value)
  end
end

---@type table<string,{[1]:string,[2]:fun(value:any):boolean}> what it must be, and whether it is
local checks = {
  cmd = { "a list of words, such as { 'specd', 'lsp' }", is_strings },
  enable = { 'true or false', is('boolean') },
  filetypes = { "a list of file types, such as { 'python', 'lua' }", is_strings },
  presets = { 'a table of names and instructions', is_presets },
  model = { 'a folder or a name', is('string') },
  warm = { 'true or false', is('boolean') },
  stream = { "'auto', 'always' or 'never'", one_of('auto', 'always', 'never') },
  start_timeout = { 'a number of seconds from 1 to 600', is_seconds_from(1) },
  apply_timeout = { 'a number of seconds from 0.05 to 600', is_seconds_from(0.05) },
  trace = { "'off', 'messages' or 'verbose'", one_of('off', 'messages', 'verbose') },
  region = { 'true or false', is('boolean') },
  progress = { 'true or false', is('boolean') },
  hunks = { 'true or false', is('boolean') },
  log_size = { 'a whole number of KiB', is_size },
}

---@param value any
local function shown(value)
  local text = vim.inspect(value, { newline = ' ', indent = '' })
  return #text <= 40 and text or text:sub(1, 39) .. '…'
end

--- The settings that `given` asks for, and what is wrong with it, in words for the user.
---@param given any
---@return specd.Settings, string[]
function M.read(given)
  local read = vim.deepcopy(M.defaults)
  if given == nil then
    return read, {}
  end
  if type(given) ~= 'table' then
    return read, { ('setup takes a table of settings, not %s; the defaults are used.'):format(shown(given)) }
  end
  local problems = {} ---@type string[]
  local keys = vim.tbl_keys(given)
  table.sort(keys, function(a, b)
    return tostring(a) < tostring(b) -- they may be of any kind
  end)
  for _, key in ipairs(keys) do
    local check, value = checks[key], given[key]
    if not check then
      local known = table.concat(vim.fn.sort(vim.tbl_keys(checks)), ', ')
      problems[#problems + 1] = ('setting %s is not known; known are %s.'):format(shown(key), known)
    elseif check[2](value) then
      read[key] = vim.deepcopy(value)
    else
      local text = 'setting %s must be %s, not %s; the default is used.'
      problems[#problems + 1] = text:format(shown(key), check[1], shown(value))
    end
  end
  return read, problems
end

--- The server's part, as `initializationOptions` (editors/PROTOCOL.md).
---@return table<string,any>
function M.server_options()
  local current = M.current
  local presets = current.presets
  return {
    presets = presets and (next(presets) and presets or vim.empty_dict()) or nil,
    model = current.model,
    warm = current.warm,
    stream = current.stream,
    applyTimeout = current.apply_timeout,
  }
end

return M
