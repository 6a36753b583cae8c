--- What is to be rewritten, held by an extmark, so that it is still the same place after the user has thought about the
--- instruction, or the server has been started.

local api = vim.api
local ns = api.nvim_create_namespace('specd.target')

---@alias specd.Where 'file'|'cursor'|{[1]:integer,[2]:integer} lines as a user counts them

---@class specd.Target
---@field bufnr integer
---@field where specd.Where
---@field mark? integer
---@field has_lines? boolean it was asked for lines, not for the place of a cursor
---@field is_released? boolean
local Target = {}
Target.__index = Target

local M = {}

---@param value any
local function are_lines(value)
  return type(value) == 'table'
    and vim.islist(value)
    and #value == 2
    and vim.iter(value):all(function(one)
      return type(one) == 'number' and one % 1 == 0
    end)
end

--- What is wrong with `where` for a buffer; nil if nothing is.
---@param bufnr integer
---@param where any
---@return string?
function M.problem(bufnr, where)
  if where == 'file' or where == 'cursor' then
    return nil
  end
  if not are_lines(where) then
    local shown = vim.inspect(where, { newline = ' ', indent = '' })
    return ("where to rewrite is 'cursor', 'file' or { first line, last line }, not %s"):format(shown)
  end
  local count = api.nvim_buf_line_count(bufnr)
  if where[1] < 1 or where[1] > where[2] or where[2] > count then
    local text = 'lines %d to %d cannot be rewritten; the first is at least 1, the last at most %d, and none before it'
    return text:format(where[1], where[2], count)
  end
end

---@param bufnr integer
---@param where specd.Where
---@return specd.Target
function M.new(bufnr, where)
  local self = setmetatable({ bufnr = bufnr, where = where }, Target)
  if where ~= 'file' then
    local count = api.nvim_buf_line_count(bufnr)
    local first, last ---@type integer, integer
    if where == 'cursor' then
      first = api.nvim_win_get_cursor(vim.fn.bufwinid(bufnr) > 0 and vim.fn.bufwinid(bufnr) or 0)[1] - 1
      last = first
    else
      first, last = where[1] - 1, where[2]
    end
    self.has_lines = math.min(last, count) > math.min(first, count - 1)
    self.mark = api.nvim_buf_set_extmark(bufnr, ns, math.min(first, count - 1), 0, {
      end_row = math.min(last, count),
      end_right_gravity = first == last, -- an empty one moves as a whole
    })
  end
  return self
end

--- 0-based, half open; nil for the file.
---@return integer?, integer?
function Target:lines()
  if not self.mark then
    return nil, nil
  end
  local mark = api.nvim_buf_get_extmark_by_id(self.bufnr, ns, self.mark, { details = true })
  return mark[1], mark[3].end_row
end

--- As the server is asked; nil for the file. An empty range stands for the definition around it.
---@return lsp.Range?
function Target:range()
  local first, last = self:lines()
  if not first then
    return nil
  end
  return { start = { line = first, character = 0 }, ['end'] = { line = last, character = 0 } }
end

--- For the prompt.
---@return string
function Target:name()
  local first, last = self:lines()
  if not first or not last then
    return 'the file'
  elseif self.where == 'cursor' then
    return ('around line %d'):format(first + 1)
  end
  return last - first == 1 and ('line %d'):format(last) or ('lines %d-%d'):format(first + 1, last)
end

--- Whether the place is still there, and wanted.
---@return boolean
function Target:is_held()
  return not self.is_released and api.nvim_buf_is_loaded(self.bufnr)
end

--- Whether the lines that were asked for have been deleted since, or are behind the end of what was read anew.
---@return boolean
function Target:is_gone()
  local first, last = self:lines()
  if not first then
    return false
  end
  return first >= api.nvim_buf_line_count(self.bufnr) or (self.has_lines == true and first == last)
end

function Target:release()
  self.is_released = true
  if self.mark and api.nvim_buf_is_valid(self.bufnr) then
    api.nvim_buf_del_extmark(self.bufnr, ns, self.mark)
  end
end

return M
