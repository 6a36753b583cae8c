--- Text edits of the server as changes of a buffer, one each. Neovim's own way to make them needs two changes, or adds an
--- empty line, where an edit reaches the end of the text: whoever compares versions or lines then takes it for another.

local M = {}

---@param text string
---@param bufnr integer
---@return string[] lines the last one is what stands behind the last line end
local function lines_of(text, bufnr)
  if vim.bo[bufnr].fileformat ~= 'unix' then -- there a return before a line's end is the buffer's
    text = text:gsub('\r\n', '\n'):gsub('\r', '\n')
  end
  return vim.split(text, '\n', { plain = true })
end

--- Byte column of an LSP character; the line's end if it lies behind.
---@param bufnr integer
---@param row integer
---@param character integer
---@param encoding 'utf-8'|'utf-16'|'utf-32'
---@return integer
local function column(bufnr, row, character, encoding)
  local line = vim.api.nvim_buf_get_lines(bufnr, row, row + 1, true)[1]
  return character == 0 and 0 or vim.str_byteindex(line, encoding, character, false)
end

---@param bufnr integer
---@param edit lsp.TextEdit
---@param encoding 'utf-8'|'utf-16'|'utf-32'
local function make(bufnr, edit, encoding)
  local first, last = edit.range.start, edit.range['end']
  local count = vim.api.nvim_buf_line_count(bufnr)
  local lines = lines_of(edit.newText, bufnr)
  if first.character == 0 and (last.character == 0 or last.line >= count) and lines[#lines] == '' then
    table.remove(lines) -- whole lines for whole lines
    vim.api.nvim_buf_set_lines(bufnr, math.min(first.line, count), math.min(last.line, count), true, lines)
    return
  end
  if last.line >= count and #lines > 1 and lines[#lines] == '' then
    table.remove(lines) -- the text has an end of line behind its last line; the buffer has none
  end
  if first.line >= count then
    vim.api.nvim_buf_set_lines(bufnr, count, count, true, lines)
    return
  end
  local from = column(bufnr, first.line, first.character, encoding)
  if last.line < count then
    local to = column(bufnr, last.line, last.character, encoding)
    vim.api.nvim_buf_set_text(bufnr, first.line, from, last.line, to, lines)
  else
    vim.api.nvim_buf_set_text(bufnr, first.line, from, -1, -1, lines)
  end
end

--- Makes the edits, whose ranges all count in the text as it is.
---@param edits lsp.TextEdit[]
---@param bufnr integer
---@param encoding 'utf-8'|'utf-16'|'utf-32'
function M.make(edits, bufnr, encoding)
  local ordered = vim.list_extend({}, edits)
  table.sort(ordered, function(a, b)
    local one, other = a.range.start, b.range.start
    return one.line > other.line or one.line == other.line and one.character > other.character
  end)
  for _, edit in ipairs(ordered) do
    make(bufnr, edit, encoding)
  end
end

return M
