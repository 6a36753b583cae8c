--- What is seen of a rewrite in the buffer: the region while it works, its progress, and the hunks, until they are
--- changed or dismissed. Extmarks, so all of it moves with the text.

local kept = require('specd.kept')
local settings = require('specd.settings')

local M = {}

local api = vim.api
local region_ns = api.nvim_create_namespace('specd.region')
local hunk_ns = api.nvim_create_namespace('specd.hunks')
local old_ns = api.nvim_create_namespace('specd.old')

local links = {
  SpecdRegion = 'CursorLine',
  SpecdProgress = 'Comment',
  SpecdHunk = 'DiffAdd',
  SpecdHunkSign = 'Added',
  SpecdDeletedSign = 'Removed',
  SpecdOld = 'DiffDelete',
}
for name, link in pairs(links) do
  api.nvim_set_hl(0, name, { link = link, default = true })
end

---@type table<integer,table<integer,specd.Hunk>> those that are marked, by buffer and extmark
local marked = {}

--- Show that lines [first, last) are being rewritten.
---@param bufnr integer
---@param first integer
---@param last integer
function M.show_region(bufnr, first, last)
  if settings.current.region then
    local end_row = math.max(0, math.min(last, api.nvim_buf_line_count(bufnr)) - 1)
    api.nvim_buf_set_extmark(bufnr, region_ns, math.min(first, end_row), 0, {
      id = 1,
      end_row = end_row,
      end_col = #api.nvim_buf_get_lines(bufnr, end_row, end_row + 1, true)[1],
      line_hl_group = 'SpecdRegion',
      right_gravity = false,
      end_right_gravity = true,
      priority = 90,
    })
  end
  local progress = api.nvim_buf_get_extmark_by_id(bufnr, region_ns, 2, { details = true })
  if progress[1] then
    M.show_progress(bufnr, progress[3].virt_text[1][1], first)
  end
end

--- Show `text` beside the first line of the region, or beside `line`.
---@param bufnr integer
---@param text string
---@param line? integer
function M.show_progress(bufnr, text, line)
  if not settings.current.progress then
    return
  end
  local at = api.nvim_buf_get_extmark_by_id(bufnr, region_ns, 2, {})
  line = line or at[1] or 0
  api.nvim_buf_set_extmark(bufnr, region_ns, math.min(line, api.nvim_buf_line_count(bufnr) - 1), 0, {
    id = 2,
    virt_text = { { text, 'SpecdProgress' } },
    virt_text_pos = 'eol',
    hl_mode = 'combine',
    right_gravity = false,
  })
end

--- The rewrite is over.
---@param bufnr integer
function M.hide_region(bufnr)
  if api.nvim_buf_is_valid(bufnr) then
    api.nvim_buf_clear_namespace(bufnr, region_ns, 0, -1)
  end
end

--- How lines that are gone are shown: above the line behind them, or, at the buffer's end, below the last one.
---@param bufnr integer
---@param hunk specd.Hunk
---@return vim.api.keyset.set_extmark
local function deletion(bufnr, hunk)
  local is_below = M.row(bufnr, hunk) < hunk.first
  local text = ('%d line%s deleted%s'):format(#hunk.old, #hunk.old == 1 and '' or 's', is_below and ' below' or '')
  return {
    sign_text = is_below and '▁' or '▔',
    sign_hl_group = 'SpecdDeletedSign',
    virt_text = { { text, 'SpecdProgress' } },
  }
end

---@param bufnr integer
---@param hunk specd.Hunk
---@param mark? integer
---@return integer mark
local function draw(bufnr, hunk, mark)
  local options ---@type vim.api.keyset.set_extmark
  if hunk.first == hunk.last then
    options = deletion(bufnr, hunk)
  else
    options = { sign_text = '▎', sign_hl_group = 'SpecdHunkSign', line_hl_group = 'SpecdHunk' }
    -- Up to the last line's end: a sign is in each line that a mark touches.
    options.end_row, options.end_col = hunk.last - 1, #hunk.new[#hunk.new]
  end
  options.id, options.priority = mark, 100
  return api.nvim_buf_set_extmark(bufnr, hunk_ns, M.row(bufnr, hunk), 0, options)
end

--- Mark a hunk that is as it was written.
---@param bufnr integer
---@param hunk specd.Hunk
function M.add_hunk(bufnr, hunk)
  if settings.current.hunks then
    marked[bufnr] = marked[bufnr] or {}
    marked[bufnr][draw(bufnr, hunk)] = hunk
  end
end

--- The hunk is out of the buffer again.
---@param bufnr integer
---@param job string
---@param number integer
function M.remove_hunk(bufnr, job, number)
  for mark, hunk in pairs(marked[bufnr] or {}) do
    if hunk.job == job and hunk.number == number then
      M._remove(bufnr, mark)
    end
  end
end

---@param bufnr integer
---@param mark integer
function M._remove(bufnr, mark)
  api.nvim_buf_del_extmark(bufnr, hunk_ns, mark)
  if api.nvim_buf_del_extmark(bufnr, old_ns, mark) then
    api.nvim__redraw({ buf = bufnr, valid = false })
  end
  marked[bufnr][mark] = nil
end

--- The buffer has changed: remove the marks of hunks whose text is no longer as it was written, and put those of
--- deletions where they are now.
---@param bufnr integer
function M.renew(bufnr)
  for mark, hunk in pairs(marked[bufnr] or {}) do
    if kept.state(bufnr, hunk) ~= 'in' then
      M._remove(bufnr, mark)
    elseif hunk.first == hunk.last then
      draw(bufnr, hunk, mark)
    end
  end
end

--- The hunks that are marked, top to bottom.
---@param bufnr integer
---@return specd.Hunk[]
function M.hunks(bufnr)
  local found = vim.tbl_values(marked[bufnr] or {})
  table.sort(found, function(a, b)
    return a.first < b.first or (a.first == b.first and a.last < b.last)
  end)
  return found
end

--- The line in which a marked hunk is seen.
---@param bufnr integer
---@param hunk specd.Hunk
---@return integer
function M.row(bufnr, hunk)
  return math.min(hunk.first, api.nvim_buf_line_count(bufnr) - 1)
end

--- Remove all marks of hunks, but for those of one job.
---@param bufnr integer
---@param except? string
function M.dismiss(bufnr, except)
  if not api.nvim_buf_is_valid(bufnr) then
    marked[bufnr] = nil
    return
  end
  for mark, hunk in pairs(marked[bufnr] or {}) do
    if hunk.job ~= except then
      M._remove(bufnr, mark)
    end
  end
end

--- Neovim draws lines above a buffer's first one only in a window that has been told of them ("filler" lines), and may
--- leave rows where they were when such lines go.
---@param bufnr integer
---@param filler integer lines above the first one
local function redraw(bufnr, filler)
  for _, window in ipairs(vim.fn.win_findbuf(bufnr)) do
    api.nvim_win_call(window, function()
      if vim.fn.line('w0') == 1 then
        vim.fn.winrestview({ topline = 1, topfill = filler })
      end
    end)
  end
  api.nvim__redraw({ buf = bufnr, valid = false })
end

--- Show the old lines above each hunk, or hide them.
---@param bufnr integer
function M.toggle_old(bufnr)
  if #api.nvim_buf_get_extmarks(bufnr, old_ns, 0, -1, { limit = 1 }) > 0 then
    api.nvim_buf_clear_namespace(bufnr, old_ns, 0, -1)
    return redraw(bufnr, 0)
  end
  local filler = 0
  for mark, hunk in pairs(marked[bufnr] or {}) do
    local lines = vim.tbl_map(function(line)
      return { { line == '' and ' ' or line, 'SpecdOld' } }
    end, hunk.old)
    local row = M.row(bufnr, hunk)
    local above = row == hunk.first
    api.nvim_buf_set_extmark(bufnr, old_ns, row, 0, { id = mark, virt_lines = lines, virt_lines_above = above })
    filler = filler + (above and row == 0 and #lines or 0)
  end
  redraw(bufnr, filler)
end

return M
