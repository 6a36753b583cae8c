--- Asks for the instruction. Meanwhile the daemon reads what comes before it, so that Enter finds it ready.

local M = {}

local KEPT = 20
local PREPARE_MS = 200 -- after a change of the text

---@type string[] the latest first
M.history = {}

---@param instruction string
function M.remember(instruction)
  M.history = vim.tbl_filter(function(one)
    return one ~= instruction
  end, M.history)
  table.insert(M.history, 1, instruction)
  M.history[KEPT + 1] = nil
  vim.fn.histadd('input', instruction)
end

--- Instructions that begin with `lead`: earlier ones, then presets.
---@param lead string
---@return string[]
function M.complete(lead)
  local known = vim.list_extend({}, M.history)
  for _, text in vim.spairs(require('specd.settings').current.presets or {}) do
    known[#known + 1] = text
  end
  return vim.tbl_filter(function(one)
    return vim.startswith(one, lead)
  end, known)
end

---@param bufnr integer
---@param target specd.Target
local function prepare(bufnr, target)
  require('specd.client').ensure(bufnr, function(client)
    if client and target:is_held() then
      local params = { uri = vim.uri_from_bufnr(bufnr), range = target:range() }
      -- Only a head start: what keeps it from working is told when the rewrite is asked for.
      client:request('specd/prepare', params, function() end, bufnr)
    end
  end)
end

--- Ask the user; `done` is called with what was entered, nil for nothing.
---@param bufnr integer
---@param target specd.Target
---@param done fun(instruction?:string)
function M.ask(bufnr, target, done)
  prepare(bufnr, target)
  local is_due = false
  local follower = require('specd.changes').follow(bufnr, function()
    if not is_due then
      is_due = true
      vim.defer_fn(function()
        is_due = false
        prepare(bufnr, target)
      end, PREPARE_MS)
    end
  end)
  local options = { prompt = ('Rewrite %s: '):format(target:name()) }
  options.completion = "customlist,v:lua.require'specd.prompt'.complete"
  vim.ui.input(options, function(instruction)
    follower.stop()
    instruction = vim.trim(instruction or '')
    done(instruction ~= '' and instruction or nil)
  end)
end

return M
