--- Neovim's configuration of specd's language server: `vim.lsp.enable('specd')` is all it needs. Change it with
--- `require('specd').setup{...}`, or with `vim.lsp.config('specd', {...})`.

local handlers = require('specd.handlers')
local settings = require('specd.settings')

---@type vim.lsp.Config
return {
  cmd = settings.current.cmd,
  filetypes = settings.current.filetypes,
  root_markers = { '.git' },
  trace = settings.current.trace,
  -- Each change is told at once: a rewrite that streams must not work on a text that is 150 ms old.
  flags = { debounce_text_changes = 0 },
  capabilities = {
    -- As most servers do: clients of one buffer that count differently make Neovim warn.
    general = { positionEncodings = { 'utf-16', 'utf-8', 'utf-32' } },
    experimental = { specd = { inputBox = true, hunkAck = true, undoJoin = true } },
  },
  before_init = function(params, config)
    params.initializationOptions =
      vim.tbl_deep_extend('force', settings.server_options(), config.init_options or {})
  end,
  handlers = handlers.handlers,
  commands = handlers.commands,
}
