-- Tool calls to approve and questions to answer.
--
-- The first of them is shown in a float over its chat. The float never takes the focus unasked, and gives it back
-- after each decision: a key that was meant for something else cannot approve anything.
local M = {}
local api = vim.api
local calls = require("eca.call")
local server = require("eca.server")
local text = require("eca.text")

M.items = {} -- {kind, chat, call} or {kind, chat, question, answer, id}
M.window_of = function() end -- (chat) -> the window in this tab that shows the chat or its parent

local ns = api.nvim_create_namespace("eca_decide")
local float, came_from -- float: {win, buf, item}

local function close()
  if float then
    local old = float
    float = nil
    if api.nvim_win_is_valid(old.win) then
      local focused = api.nvim_get_current_win() == old.win
      api.nvim_win_close(old.win, true)
      if focused and came_from and api.nvim_win_is_valid(came_from) then api.nvim_set_current_win(came_from) end
    end
  end
end

local function body(item)
  if item.kind == "approval" then
    local lines, kinds = calls.lines(item.call)
    if item.chat.parent then
      table.insert(lines, 1, "(asked by a subagent)")
      local moved = {}
      for i, kind in pairs(kinds) do
        moved[i + 1] = kind
      end
      kinds = moved
    end
    return lines, kinds
  end
  local lines = text.lines(item.question.question)
  lines[#lines + 1] = ""
  for i, option in ipairs(item.question.options or {}) do
    local description = option.description and (": " .. option.description) or ""
    lines[#lines + 1] = ("%d  %s"):format(i, text.line((option.label or "") .. description, 300))
  end
  return lines, {}
end

local function title(item)
  local of = #M.items > 1 and (" (1 of %d)"):format(#M.items) or ""
  if item.kind == "approval" then
    return (" Approve? %s%s "):format(text.line(item.call.summary or calls.name(item.call), 90), of)
  end
  return (" Question%s "):format(of)
end

-- The keys of the float, as many as fit.
local function footer(item, focused, width)
  local keys, short
  if item.kind == "approval" then
    keys = { "a accept", "s for the session", "r reject", "w with words" }
    short = { "a yes", "s session", "r no", "w words" }
    if (item.call.details or {}).type == "fileChange" then
      keys[#keys + 1], short[#short + 1] = "d diff", "d diff"
    end
    keys[#keys + 1] = "q later"
  else
    keys = { "number chooses", "i own answer", "x no answer", "q later" }
    if item.question.allowFreeform == false then table.remove(keys, 2) end
    short = keys
  end
  local function fits(list) return vim.fn.strchars(table.concat(list, " · ")) + 6 <= width end
  if not fits(keys) then keys = vim.deepcopy(short) end
  while #keys > 1 and not fits(keys) do
    table.remove(keys)
  end
  return (focused and " " or " ga: ") .. table.concat(keys, " · ") .. " "
end

local function open(item, focus)
  close()
  local lines, kinds = body(item)
  local buf = api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden = "wipe"
  api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  for i, hl in pairs(kinds) do
    api.nvim_buf_set_extmark(buf, ns, i - 1, 0, { line_hl_group = hl })
  end
  local over = M.window_of(item.chat)
  local width = over and api.nvim_win_get_width(over) - 2 or math.min(100, vim.o.columns - 4)
  local room = over and api.nvim_win_get_height(over) or vim.o.lines
  width = math.max(width, 20)
  local height = 0
  for _, line in ipairs(lines) do
    height = height + math.max(1, math.ceil(vim.fn.strdisplaywidth(line:sub(1, 4000)) / width))
    if height > room then break end
  end
  height = math.max(1, math.min(height, math.floor(room * 0.75) - 2))
  local where = { relative = "win", win = over, anchor = "SW", row = room - 1, col = 0 }
  if not over then
    where = { relative = "editor", row = math.max(0, (room - height) / 2 - 2), col = (vim.o.columns - width) / 2 }
  end
  where.width, where.height, where.style, where.border = width, height, "minimal", "rounded"
  where.title, where.footer, where.zindex = title(item), footer(item, focus, width), 60
  local win = api.nvim_open_win(buf, false, where)
  vim.wo[win].wrap, vim.wo[win].linebreak = true, true
  vim.wo[win].winhighlight = "FloatBorder:EcaToolAsk,FloatTitle:EcaToolAsk"
  float = { win = win, buf = buf, item = item }

  local function map(key, description, fn)
    vim.keymap.set("n", key, fn, { buffer = buf, nowait = true, desc = "eca: " .. description })
  end
  map("q", "decide later", function()
    open(item, false)
    if came_from and api.nvim_win_is_valid(came_from) then api.nvim_set_current_win(came_from) end
  end)
  if item.kind == "approval" then
    map("a", "accept", function() M.approve(item) end)
    map("s", "accept, and remember for the session", function() M.approve(item, "session") end)
    map("r", "reject", function() M.reject(item) end)
    map("w", "reject with words", function()
      vim.ui.input({ prompt = "What should it do instead? " }, function(words)
        if words then M.reject(item, words) end
      end)
    end)
    map("d", "show the change side by side", function()
      if (item.call.details or {}).type == "fileChange" then require("eca.diff").show_call(item.call.details, false) end
    end)
  else
    for i, option in ipairs(item.question.options or {}) do
      if i <= 9 then map(tostring(i), "choose " .. i, function() M.answer(item, option.label) end) end
    end
    map("i", "type an answer", function()
      if item.question.allowFreeform ~= false then
        vim.ui.input({ prompt = "Answer: " }, function(words)
          if words then M.answer(item, words) end
        end)
      end
    end)
    map("x", "give no answer", function() M.answer(item, nil) end)
  end
  if focus then api.nvim_set_current_win(win) end
end

-- Shows the first waiting item, without the focus; notifies the user if its chat is not in this tab.
function M.refresh()
  local item = M.items[1]
  if not item then
    close()
    return
  end
  if float and float.item == item and api.nvim_win_is_valid(float.win) then
    api.nvim_win_set_config(float.win, { title = title(item), title_pos = "left" })
    return
  end
  if M.window_of(item.chat) then
    open(item, false)
  elseif not item.announced then
    close()
    item.announced = true
    local what = item.kind == "approval" and "a tool call waits for your approval" or "a question waits for your answer"
    text.notify(what .. "\n:Eca approve shows it")
  end
end

function M.add(item)
  M.items[#M.items + 1] = item
  M.refresh()
end

function M.drop(matches)
  local kept = vim.tbl_filter(function(item) return not matches(item) end, M.items)
  if #kept ~= #M.items then
    M.items = kept
    if float and not vim.tbl_contains(kept, float.item) then close() end
    M.refresh()
  end
end

-- Moves the cursor into the float: of the given call, else of the first waiting item.
function M.focus(call)
  local item = M.items[1]
  for _, one in ipairs(M.items) do
    if call and one.call == call then item = one end
  end
  if not item then
    text.notify("no call or question waits for you")
    return
  end
  if not float or api.nvim_get_current_win() ~= float.win then came_from = api.nvim_get_current_win() end
  vim.cmd.stopinsert()
  open(item, true)
end

local function first(kind)
  for _, item in ipairs(M.items) do
    if item.kind == kind then return item end
  end
  text.notify(kind == "approval" and "no tool call waits for approval" or "no question waits for an answer")
end

local function decided(item)
  M.drop(function(other) return other == item end)
end

-- Approves a call (default: the first that waits) and, with a scope (session, workspace or global), similar calls.
function M.approve(item, scope)
  item = item or first("approval")
  if item then
    decided(item)
    server.notify("chat/toolCallApprove", { chatId = item.chat.id, toolCallId = item.call.id, save = scope })
  end
end

-- Rejects a call; words become the next prompt.
function M.reject(item, words)
  item = item or first("approval")
  if not item then return end
  if words and words ~= "" then
    -- A rejection ends the turn, and the words become the next prompt; a subagent's parent continues with them.
    local root = require("eca.chat").root(item.chat)
    root.steer = root.steer and (root.steer .. "\n" .. words) or words
    if item.chat.parent then server.notify("chat/promptSteer", { chatId = root.id, message = words }) end
  end
  decided(item)
  server.notify("chat/toolCallReject", { chatId = item.chat.id, toolCallId = item.call.id })
end

function M.answer(item, words)
  item = item or first("question")
  if item then
    decided(item)
    item.answer({ answer = words or vim.NIL, cancelled = words == nil })
    if words then item.chat.view:notice(item.question.question .. " → " .. words) end
  end
end

server.on_request("chat/askQuestion", function(params, answer, id)
  local chat = require("eca.chat").get(params.chatId)
  M.add({ kind = "question", chat = chat, question = params, answer = answer, id = id })
end)

server.on("$/cancelRequest", function(params)
  M.drop(function(item) return item.id ~= nil and item.id == params.id end)
end)

return M
