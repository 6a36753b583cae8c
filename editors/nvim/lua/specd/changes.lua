--- Follows a buffer's changes, so that lines that were counted in an older version can be found in the present one.

local M = {}

---@class specd.Change lines [first, last) became [first, new_last) in this version
---@field version integer
---@field first integer
---@field last integer
---@field new_last integer

---@class specd.Follower
---@field lines? fun(version:integer, line:integer):integer
---@field stop fun()

--- Follow `bufnr` until `stop`. `on_change` is called after each change.
---@param bufnr integer
---@param on_change fun()
---@return specd.Follower
function M.follow(bufnr, on_change)
  local changes = {} ---@type specd.Change[]
  local is_over = false
  vim.api.nvim_buf_attach(bufnr, false, {
    on_lines = function(_, _, version, first, last, new_last)
      if is_over then
        return true
      end
      changes[#changes + 1] = { version = version, first = first, last = last, new_last = new_last }
      on_change()
    end,
  })
  return {
    lines = function(version, line)
      for _, change in ipairs(changes) do
        if change.version > version then
          line = M.moved(line, change)
        end
      end
      return line
    end,
    stop = function()
      is_over = true
    end,
  }
end

--- Where a line's beginning is after a change; inside of what was replaced it is held within what came in its place.
---@param line integer
---@param change specd.Change
---@return integer
function M.moved(line, change)
  if line >= change.last then
    return line + change.new_last - change.last
  end
  return line > change.first and math.min(line, change.new_last) or line
end

return M
