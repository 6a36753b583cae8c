--- :SpecdInfo: what runs, what is loaded, where the logs are.

local M = {}

---@param bytes number
local function mib(bytes)
  return ('%.0f MiB'):format(bytes / 2 ^ 20)
end

---@param status table? the daemon's, as docs/http.md has it
---@param problem? string why there is none
---@return string[]
function M.daemon_lines(status, problem)
  if not status or status == vim.NIL then
    local lines = vim.split(problem or 'none answers; the next rewrite starts one, or says what keeps it', '\n')
    lines[1] = 'daemon   ' .. lines[1]
    for at = 2, #lines do
      lines[at] = '         ' .. lines[at]
    end
    return lines
  end
  local lines = {
    ('daemon   specd %s, pid %d, %s, up %.0f s, %s resident'):format(
      status.version,
      status.pid,
      status.state,
      status.uptime_seconds,
      mib(status.memory_bytes)
    ),
    ('jobs     %d at work, %d waiting'):format(status.jobs.active, status.jobs.waiting),
  }
  for _, model in ipairs(status.models or {}) do
    local what = { model.path, model.state, model.device, model.dtype }
    lines[#lines + 1] = 'model    ' .. table.concat(vim.tbl_filter(function(one)
      return type(one) == 'string' and one ~= ''
    end, what), ', ')
    if type(model.message) == 'string' and model.message ~= '' then
      lines[#lines + 1] = '         ' .. model.message:gsub('\n', ' ')
    end
  end
  if type(status.problem) == 'string' and status.problem ~= '' then
    lines[#lines + 1] = 'problem  ' .. status.problem:gsub('\n', ' ')
  end
  lines[#lines + 1] = 'settings ' .. tostring(status.settings)
  lines[#lines + 1] = 'log      ' .. tostring(status.log)
  return lines
end

---@param client vim.lsp.Client
---@return string
function M.buffers(client)
  local count = vim.tbl_count(client.attached_buffers)
  return count == 1 and '1 buffer' or ('%d buffers'):format(count)
end

---@param lines string[]
local function show(lines)
  local bufnr = vim.api.nvim_create_buf(false, true)
  vim.bo[bufnr].modifiable = true -- as not all buffers are with |-M|
  vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  vim.bo[bufnr].modifiable = false
  vim.bo[bufnr].bufhidden = 'wipe'
  vim.cmd(('botright %dsplit'):format(math.min(#lines, 15)))
  vim.api.nvim_win_set_buf(0, bufnr)
  vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = bufnr, desc = 'Close' })
end

function M.open()
  local here = vim.api.nvim_get_current_buf()
  local client = require('specd.client').of(here) or vim.lsp.get_clients({ name = 'specd' })[1]
  local version = tostring(vim.version())
  if not client then
    return show({
      ('editor   Neovim %s'):format(version),
      'server   not attached to a buffer; :SpecdRewrite attaches it, :checkhealth specd says what keeps it',
      ('log      %s (:SpecdLog)'):format(require('specd.log').path),
    })
  end
  client:request('specd/status', vim.empty_dict(), function(err, result)
    local server = client.server_info or {}
    local lines = {
      ('editor   Neovim %s'):format(version),
      ('server   %s %s, attached to %s, root %s'):format(
        server.name or 'specd',
        server.version or '?',
        M.buffers(client),
        client.root_dir or 'none'
      ),
      ('log      %s (:SpecdLog)'):format(require('specd.log').path),
    }
    if err then
      lines[#lines + 1] = 'daemon   ' .. err.message
    else
      vim.list_extend(lines, M.daemon_lines(result.daemon, result.problem))
    end
    show(lines)
  end)
end

return M
