--- Follows a buffer's changes, so that lines that were counted in an older version can be found in the present one.

local M = {}

local KEPT = 4096 -- changes; what is asked for is of a version that is seconds old

---@class specd.Change lines [first, last) became [first, new_last) in this version
---@field version integer
---@field first integer
---@field last integer
---@field new_last integer

---@class specd.Follower
---@field lines fun(version:integer, line:integer):integer
---@field place fun(version:integer, first:integer, last:integer):integer,integer,boolean where lines [first, last) of
--- that version are, and whether they are as then
---@field stop fun()

--- Follow `bufnr` until `stop`. `on_change` is called after each change, `on_end` when the buffer is read anew or closed.
---@param bufnr integer
---@param on_change fun(change: specd.Change)
---@param on_end? fun()
---@return specd.Follower
function M.follow(bufnr, on_change, on_end)
  local changes = {} ---@type specd.Change[]
  local is_over = false

  local function finish()
    if not is_over and on_end then
      is_over = true
      on_end()
    end
  end

  vim.api.nvim_buf_attach(bufnr, false, {
    on_lines = function(_, _, version, first, last, new_last)
      if is_over then
        return true
      end
      local change = { version = version, first = first, last = last, new_last = new_last }
      if #changes == KEPT then
        changes = vim.list_slice(changes, KEPT / 2)
      end
      changes[#changes + 1] = change
      on_change(change)
    end,
    on_reload = finish,
    on_detach = finish,
  })

  ---@param version integer
  ---@return Iter
  local function since(version)
    return vim.iter(changes):filter(function(change)
      return change.version > version
    end)
  end

  return {
    lines = function(version, line)
      return since(version):fold(line, M.moved)
    end,
    place = function(version, first, last)
      local is_untouched = true
      for change in since(version) do
        local is_inside = change.last > first and change.first < last
        local is_around = first == last and change.first < first and change.last > last
        is_untouched = is_untouched and not is_inside and not is_around
        local moved = M.moved(first, change)
        last = first < last and math.max(moved, M.moved(last - 1, change) + 1) or moved
        first = moved
      end
      return first, last, is_untouched
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
