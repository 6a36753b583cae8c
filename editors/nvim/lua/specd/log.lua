--- specd's own log: what the server says of each job (figures, no text of yours), and its trace. Neovim's log drops it,
--- since its level is WARN.

local settings = require('specd.settings')

local M = {}

M.path = vim.fs.joinpath(vim.fn.stdpath('log') --[[@as string]], 'specd.log')

local names = { 'error', 'warning', 'info', 'log', 'debug' } -- of LSP's MessageType

---@param kind integer|string LSP's MessageType, or a word
---@param text string
function M.write(kind, text)
  vim.fn.mkdir(vim.fs.dirname(M.path), 'p')
  local stat = vim.uv.fs_stat(M.path)
  if stat and stat.size > settings.current.log_size * 1024 then
    vim.uv.fs_rename(M.path, M.path .. '.1')
  end
  local file = io.open(M.path, 'a')
  if file then
    file:write(('%s %-7s %s\n'):format(os.date('%Y-%m-%d %H:%M:%S'), names[kind] or kind, text))
    file:close()
  end
end

--- The log in a window, its end in view.
function M.open()
  if not vim.uv.fs_stat(M.path) then
    M.write('info', 'the log begins')
  end
  local window = vim.fn.bufwinid(vim.fn.bufnr(('^%s$'):format(vim.fn.fnameescape(M.path))))
  if window > 0 then
    vim.api.nvim_set_current_win(window)
  else
    vim.cmd.split({ args = { vim.fn.fnameescape(M.path) } })
  end
  vim.bo.autoread = true
  vim.bo.readonly = true
  vim.cmd.checktime({ args = { '%' } })
  vim.cmd('normal! G')
end

return M
