--- What the server sends, and the commands of its code actions, brought to those who know what to do.

local M = {}

---@param params { message: string, type: integer }
local function show(params)
  local levels = { vim.log.levels.ERROR, vim.log.levels.WARN }
  require('specd.log').write(params.type, params.message)
  require('specd.say').say(params.message, levels[params.type])
end

---@type table<string,lsp.Handler>
M.handlers = {
  ['workspace/applyEdit'] = function(_, params, ctx)
    local client = assert(vim.lsp.get_client_by_id(ctx.client_id))
    return require('specd.apply').apply(params, client.offset_encoding)
  end,
  ['window/showMessage'] = function(_, params)
    show(params)
  end,
  ['window/logMessage'] = function(_, params)
    require('specd.log').write(params.type, params.message)
  end,
  ['$/logTrace'] = function(_, params)
    local rest = params.verbose and (' (' .. params.verbose .. ')') or ''
    require('specd.log').write('trace', params.message .. rest)
  end,
  ['specd/region'] = function(_, params)
    require('specd.jobs').on_region(params)
  end,
  ['specd/hunk'] = function(_, params, ctx)
    require('specd.jobs').on_hunk(params, ctx.client_id)
  end,
}

---@type table<string,fun(command:lsp.Command,ctx:table)>
M.commands = {
  -- Of the code-action menu. It is run as :SpecdRewrite is, so that it looks and can be cancelled alike.
  ['specd.rewrite'] = function(command, ctx)
    local asked = command.arguments[1]
    require('specd').rewrite_asked(ctx.bufnr, asked, ctx.version)
  end,
}

require('specd.sync')

return M
