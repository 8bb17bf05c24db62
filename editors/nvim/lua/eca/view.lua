-- The buffer of a chat. Text is only added at its end (or, for earlier messages, at once at its top), so that long
-- chats stay fast. Folded parts are not in the buffer until they are unfolded.
--
-- Extended marks distinguish headers of tool calls, prompts and notices from a model's text, which cannot forge them.
local M = {}
M.__index = M
local api = vim.api
local config = require("eca.config")
local text = require("eca.text")

local ns = api.nvim_create_namespace("eca")
local body_ns = api.nvim_create_namespace("eca_body")
local max_line = 4000 -- bytes; longer lines are split, since drawing them is slow
local body_limit = 3000 -- lines of one body

function M.highlights()
  for name, link in pairs({
    EcaUser = "Title",
    EcaSystem = "Comment",
    EcaTool = "Function",
    EcaToolAsk = "WarningMsg",
    EcaToolError = "DiagnosticError",
    EcaReason = "NonText",
    EcaTitle = "Title",
    EcaBusy = "DiagnosticInfo",
    EcaGhost = "NonText",
  }) do
    api.nvim_set_hl(0, name, { link = link, default = true })
  end
end

local function new_page() return { lines = { "" }, blocks = {}, marks = {} } end

function M.new(name, keys)
  local self = setmetatable({}, M)
  self.buf = api.nvim_create_buf(false, true)
  local bo = vim.bo[self.buf]
  bo.bufhidden, bo.swapfile, bo.undolevels, bo.modeline = "hide", false, -1, false
  pcall(api.nvim_buf_set_name, self.buf, "eca://chat/" .. name)
  bo.filetype = "eca-chat"
  bo.modifiable = false
  self:reset()
  keys(self.buf)
  return self
end

function M:reset()
  self.page, self.col, self.last, self.bytes, self.ending = new_page(), 0, nil, 0, ""
  self.by_mark = {}
  pcall(vim.treesitter.start, self.buf, "markdown")
end

function M:valid() return api.nvim_buf_is_valid(self.buf) end

function M:edit(fn)
  vim.bo[self.buf].modifiable = true
  local ok, err = pcall(fn)
  vim.bo[self.buf].modifiable = false
  if not ok then error(err, 0) end
end

function M:clear()
  self:edit(function()
    api.nvim_buf_clear_namespace(self.buf, -1, 0, -1)
    api.nvim_buf_set_lines(self.buf, 0, -1, false, {})
  end)
  self:reset()
end

-- Adds clean text to the page that the next flush writes.
function M:put(s)
  local lines = self.page.lines
  local parts = vim.split(s, "\n", { plain = true })
  for i, part in ipairs(parts) do
    if i > 1 then
      lines[#lines + 1] = ""
      self.col = 0
    end
    while self.col + #part > max_line do
      local cut = max_line - self.col
      while cut > 0 and part:byte(cut + 1) >= 128 and part:byte(cut + 1) < 192 do
        cut = cut - 1
      end
      lines[#lines] = lines[#lines] .. part:sub(1, cut)
      lines[#lines + 1] = ""
      self.col, part = 0, part:sub(cut + 1)
    end
    lines[#lines] = lines[#lines] .. part
    self.col = self.col + #part
  end
  self.bytes = self.bytes + #s
  self.ending = (self.ending .. s:sub(-2)):sub(-2)
  self:schedule()
end

-- Begins a new paragraph if the kind of the next text differs from that of the last one.
function M:begin(kind)
  if self.last == kind and kind == "text" then return end
  if self.col > 0 then self:put("\n") end
  local apart = self.last and (self.last ~= kind or kind == "user")
  if apart and self.ending ~= "\n\n" then self:put("\n") end
  self.last = kind
end

function M:stream(s)
  self:begin("text")
  self:put(text.clean(s))
end

local function marked(self, kind, hl, lines)
  self:begin(kind)
  local from = #self.page.lines
  self:put(table.concat(lines, "\n") .. "\n")
  self.page.marks[#self.page.marks + 1] = { from, #self.page.lines - 1, hl }
end

local function prefixed(s, first, others)
  local lines = text.lines(s)
  for i, line in ipairs(lines) do
    lines[i] = (i == 1 and first or others) .. line
  end
  return lines
end

function M:user(s) marked(self, "user", "EcaUser", prefixed(s, "❯ ", "  ")) end

-- A notice of the daemon or of the plugin.
function M:notice(s, hl)
  if vim.trim(s or "") ~= "" then marked(self, "system", hl or "EcaSystem", prefixed(vim.trim(s), "• ", "  ")) end
end

-- Adds a line that can be unfolded. `block.header()` returns the line and its highlight, `block.body()` the lines that
-- unfold below it, `block.action()`, if there is one, is what Enter does instead.
function M:block(block)
  self:begin(block.kind or "block")
  local header, hl = block.header()
  block.hl, block.page, block.row = hl, self.page, #self.page.lines
  self.page.blocks[#self.page.blocks + 1] = block
  self:put(text.line(header, 400) .. "\n")
  return block
end

local function place(self, page, base)
  for _, mark in ipairs(page.marks) do
    local opts = { end_row = base + mark[2], hl_group = mark[3], hl_eol = true, priority = 200 }
    api.nvim_buf_set_extmark(self.buf, ns, base + mark[1] - 1, 0, opts)
  end
  for _, block in ipairs(page.blocks) do
    block.page = nil
    block.mark = api.nvim_buf_set_extmark(self.buf, ns, base + block.row - 1, 0, {
      line_hl_group = block.hl,
      priority = 200,
    })
    self.by_mark[block.mark] = block
    if config.options.unfold and block.body and not block.folded then self:toggle(block) end
  end
end

function M:schedule()
  if not self.scheduled and not self.held then
    self.scheduled = true
    vim.defer_fn(function()
      self.scheduled = false
      self:flush()
    end, 25)
  end
end

-- Writes the text added since the last flush. A cursor at the end stays at the end.
function M:flush()
  local page = self.page
  if not self:valid() or (#page.lines == 1 and page.lines[1] == "") then return end
  self.page = new_page()
  local last = api.nvim_buf_line_count(self.buf) - 1
  local tail = #api.nvim_buf_get_lines(self.buf, last, last + 1, false)[1]
  local following = vim.tbl_filter(
    function(win) return api.nvim_win_get_cursor(win)[1] > last end,
    vim.fn.win_findbuf(self.buf)
  )
  self:edit(function() api.nvim_buf_set_text(self.buf, last, tail, last, tail, page.lines) end)
  place(self, page, last)
  self:follow(following)
  if self.bytes > config.options.highlight_limit and vim.treesitter.highlighter.active[self.buf] then
    vim.treesitter.stop(self.buf)
  end
end

function M:follow(windows)
  local count = api.nvim_buf_line_count(self.buf)
  for _, win in ipairs(windows or vim.fn.win_findbuf(self.buf)) do
    api.nvim_win_set_cursor(win, { count, 0 })
  end
end

-- Runs fn, and inserts the text that it adds at the top, below the first `skip` lines, instead of at the end.
function M:prepend(skip, fn)
  self:flush()
  local state = { self.col, self.last, self.ending }
  self.col, self.last, self.ending, self.held = 0, nil, "", true
  fn()
  local page = self.page
  self.page = new_page()
  self.col, self.last, self.ending, self.held = state[1], state[2], state[3], nil
  if page.lines[#page.lines] == "" then page.lines[#page.lines] = nil end
  if #page.lines > 0 then
    self:edit(function() api.nvim_buf_set_lines(self.buf, skip, skip, false, page.lines) end)
    place(self, page, skip)
  end
end

function M:row(block)
  local pos = block.mark and api.nvim_buf_get_extmark_by_id(self.buf, ns, block.mark, {})
  return pos and pos[1]
end

-- Redraws a block's header, and its body if it is unfolded.
function M:update(block)
  local header, hl = block.header()
  header = text.line(header, 400)
  block.hl = hl
  if block.page then
    block.page.lines[block.row] = header
    return
  end
  local row = self:valid() and self:row(block)
  if not row then return end
  self:edit(function()
    local old = api.nvim_buf_get_lines(self.buf, row, row + 1, false)[1]
    api.nvim_buf_set_text(self.buf, row, 0, row, #old, { header })
    api.nvim_buf_set_extmark(self.buf, ns, row, 0, { id = block.mark, line_hl_group = hl, priority = 200 })
  end)
  if block.open then
    self:toggle(block)
    self:toggle(block)
  end
end

function M:toggle(block)
  local row = self:row(block)
  if not row or not block.body then return end
  self:edit(function()
    if block.open then
      api.nvim_buf_clear_namespace(self.buf, body_ns, row + 1, row + 1 + block.open)
      api.nvim_buf_set_lines(self.buf, row + 1, row + 1 + block.open, false, {})
      block.open = nil
      return
    end
    local lines, kinds = block.body()
    if #lines > body_limit then
      local more = #lines - body_limit
      lines = vim.list_slice(lines, 1, body_limit)
      lines[#lines + 1] = ("… %d more lines"):format(more)
    end
    for i, line in ipairs(lines) do
      lines[i] = "  │ " .. vim.fn.strcharpart(line, 0, 1000)
    end
    api.nvim_buf_set_lines(self.buf, row + 1, row + 1, false, lines)
    block.open = #lines
    for i, hl in pairs(kinds or {}) do
      if i <= body_limit then
        api.nvim_buf_set_extmark(self.buf, body_ns, row + i, 0, { line_hl_group = hl, priority = 200 })
      end
    end
  end)
end

-- The block whose header or body the cursor of the current window is in.
function M:block_at_cursor()
  local row = api.nvim_win_get_cursor(0)[1] - 1
  local marks = api.nvim_buf_get_extmarks(self.buf, ns, { row, -1 }, { math.max(0, row - body_limit - 1), 0 }, {})
  for _, mark in ipairs(marks) do
    local block = self.by_mark[mark[1]]
    if block and row <= mark[2] + (block.open or 0) then return block end
  end
end

-- Moves the cursor to the next (or the previous) prompt of the user.
function M:jump(direction)
  local row = api.nvim_win_get_cursor(0)[1] - 1
  local marks = api.nvim_buf_get_extmarks(self.buf, ns, 0, -1, { details = true })
  local from, to = direction > 0 and 1 or #marks, direction > 0 and #marks or 1
  for i = from, to, direction do
    if marks[i][4].hl_group == "EcaUser" and (marks[i][2] - row) * direction > 0 then
      api.nvim_win_set_cursor(0, { marks[i][2] + 1, 0 })
      return
    end
  end
end

return M
