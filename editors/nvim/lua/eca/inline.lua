-- Completion at the cursor, and rewrites of a selection. Neither changes the text before the user accepts it.
local M = {}
local api = vim.api
local config = require("eca.config")
local server = require("eca.server")
local text = require("eca.text")

local ns = api.nvim_create_namespace("eca_inline")
local shown -- {buf, row, col, text}
local asked = 0

function M.clear()
  asked = asked + 1
  if shown then
    if api.nvim_buf_is_valid(shown.buf) then api.nvim_buf_clear_namespace(shown.buf, ns, 0, -1) end
    shown = nil
  end
end

local function show(buf, row, col, suggestion)
  local lines = vim.split(suggestion, "\n", { plain = true })
  local rest = {}
  for i = 2, #lines do
    rest[#rest + 1] = { { text.clean(lines[i]), "EcaGhost" } }
  end
  api.nvim_buf_set_extmark(buf, ns, row, col, {
    virt_text = { { text.clean(lines[1]), "EcaGhost" } },
    virt_text_pos = "inline",
    virt_lines = #rest > 0 and rest or nil,
  })
  shown = { buf = buf, row = row, col = col, text = suggestion }
end

-- Requests a completion at the cursor and shows it as ghost text. `quiet`: no message if the model proposes nothing.
function M.complete(quiet)
  M.clear()
  local buf = api.nvim_get_current_buf()
  local row, col = unpack(api.nvim_win_get_cursor(0))
  local line = api.nvim_get_current_line()
  local mine, tick = asked, api.nvim_buf_get_changedtick(buf)
  server.request("completion/inline", {
    docText = table.concat(api.nvim_buf_get_lines(buf, 0, -1, false), "\n") .. "\n",
    docVersion = tick,
    position = { line = row, character = vim.str_utfindex(line, col) + 1 },
    path = api.nvim_buf_get_name(buf),
  }, function(err, result)
    if mine ~= asked or tick ~= api.nvim_buf_get_changedtick(buf) then return true end
    local item = not err and type(result) == "table" and (result.items or {})[1]
    if item and (item.text or "") ~= "" then
      show(buf, row - 1, col, item.text)
    elseif not quiet then
      text.notify(err and ("no completion: " .. text.line(err.message, 200)) or "no completion here")
    end
    return true
  end)
end

-- Inserts the shown completion. Returns false if none is shown.
function M.accept()
  if not shown then return false end
  local it = shown
  M.clear()
  local lines = vim.split(it.text, "\n", { plain = true })
  api.nvim_buf_set_text(it.buf, it.row, it.col, it.row, it.col, lines)
  local col = #lines == 1 and it.col + #lines[1] or #lines[#lines]
  api.nvim_win_set_cursor(0, { it.row + #lines, col })
  return true
end

function M.setup()
  local group = api.nvim_create_augroup("eca_inline", { clear = true })
  api.nvim_create_autocmd({ "CursorMovedI", "TextChangedI", "InsertLeave", "BufLeave" }, {
    group = group,
    callback = function(event)
      if shown or event.event ~= "CursorMovedI" then M.clear() end
      local inline = config.options.inline
      if inline.auto and event.event == "TextChangedI" and server.state == "running" and vim.bo.buftype == "" then
        local mine = asked
        vim.defer_fn(function()
          if mine == asked and vim.startswith(api.nvim_get_mode().mode, "i") then M.complete(true) end
        end, inline.delay)
      end
    end,
  })
end

local rewrites = {} -- by id: {buf, from, to, mark, parts, done}

local function finish(rewrite)
  local fence = "^%s*```[^\n]*\n(.-)\n?```%s*$"
  local new = table.concat(rewrite.parts)
  new = vim.split((new:match(fence) or new):gsub("\n$", ""), "\n", { plain = true })
  local buf = rewrite.buf
  if not api.nvim_buf_is_valid(buf) then return end
  local pos = api.nvim_buf_get_extmark_by_id(buf, ns, rewrite.mark, { details = true })
  api.nvim_buf_clear_namespace(buf, ns, pos[1], pos[3].end_row + 1)
  local from, to = pos[1], pos[3].end_row
  local before = api.nvim_buf_get_lines(buf, 0, -1, false)
  local after = vim.list_slice(before, 1, from)
  vim.list_extend(after, vim.list_extend({}, new))
  vim.list_extend(after, vim.list_slice(before, to + 1))
  require("eca.diff").show(api.nvim_buf_get_name(buf), before, after)
  local tick = api.nvim_buf_get_changedtick(buf)
  for _, win in ipairs(api.nvim_tabpage_list_wins(0)) do
    vim.keymap.set("n", "a", function()
      vim.cmd.tabclose()
      if api.nvim_buf_get_changedtick(buf) ~= tick then
        text.warn("the text has changed since, and the rewrite was not applied\nSelect it and rewrite again")
        return
      end
      api.nvim_buf_set_lines(buf, from, to, false, new)
    end, { buffer = api.nvim_win_get_buf(win), nowait = true, desc = "eca: apply the rewrite" })
  end
  text.notify("a applies the rewrite, q discards it")
end

-- Rewrites lines (from 1, inclusive) of the current buffer as instructed, and shows the change before it is made.
function M.rewrite(from, to, instruction)
  if instruction == "" then
    vim.ui.input({ prompt = "Rewrite how? " }, function(words)
      if words and words ~= "" then M.rewrite(from, to, words) end
    end)
    return
  end
  local buf, id = api.nvim_get_current_buf(), text.uuid()
  local lines = api.nvim_buf_get_lines(buf, from - 1, to, false)
  local mark = api.nvim_buf_set_extmark(buf, ns, from - 1, 0, {
    end_row = math.min(to, api.nvim_buf_line_count(buf)),
    hl_group = "EcaGhost",
    virt_text = { { " rewriting…", "EcaBusy" } },
  })
  rewrites[id] = { buf = buf, mark = mark, parts = {} }
  local last = lines[#lines] or ""
  server.request("rewrite/prompt", {
    id = id,
    text = table.concat(lines, "\n"),
    prompt = instruction,
    path = api.nvim_buf_get_name(buf),
    range = {
      start = { line = from, character = 0 },
      ["end"] = { line = to, character = vim.str_utfindex(last) },
    },
  }, function(err)
    if err then
      rewrites[id] = nil
      api.nvim_buf_clear_namespace(buf, ns, 0, -1)
    end
  end)
end

server.on("rewrite/contentReceived", function(params)
  local rewrite, c = rewrites[params.rewriteId], params.content
  if not rewrite then return end
  if c.type == "text" then
    rewrite.parts[#rewrite.parts + 1] = c.text
  elseif c.type == "replace" then
    rewrite.parts = { c.text }
  elseif c.type == "finished" or c.type == "error" then
    rewrites[params.rewriteId] = nil
    if c.type == "finished" and #rewrite.parts > 0 then
      finish(rewrite)
      return
    end
    if api.nvim_buf_is_valid(rewrite.buf) then api.nvim_buf_del_extmark(rewrite.buf, ns, rewrite.mark) end
    text.error(
      "the rewrite failed: " .. text.line(c.message or "the model gave no text", 300) .. "\nThe text is unchanged"
    )
  end
end)

return M
