-- Completion in the prompt: /commands, @contexts, #files.
local M = {}
local api = vim.api
local server = require("eca.server")
local text = require("eca.text")

local offered = {} -- the word that was inserted -> the context that it stands for

-- The word before the cursor that begins with one of the signs: its column (from 0), sign and query.
local function word()
  local row, col = unpack(api.nvim_win_get_cursor(0))
  local before = api.nvim_get_current_line():sub(1, col)
  if row == 1 and before:find("^/%S*$") then return 0, "/", before:sub(2) end
  local at, sign, query = before:match("()([@#])([^%s@#]*)$")
  if at and (at == 1 or before:sub(at - 1, at - 1):find("%s")) then return at - 1, sign, query end
end

local methods = { ["/"] = "chat/queryCommands", ["@"] = "chat/queryContext", ["#"] = "chat/queryFiles" }

local function label(context)
  if context.path then
    local path = vim.fn.fnamemodify(context.path, ":.")
    local absolute = path:find("^[/~]") or path:find("^%a:")
    return absolute and path or ("./" .. path)
  elseif context.uri then
    return ("%s:%s"):format(context.server or "", context.name or context.uri)
  end
  return context.type
end

local function items(sign, query, result)
  local out = {}
  result = type(result) == "table" and result or {}
  if sign == "/" then
    local first, others = {}, {} -- by name; by description
    for _, command in ipairs(result.commands or {}) do
      table.insert(vim.startswith(command.name, query) and first or others, command)
    end
    for _, command in ipairs(vim.list_extend(first, others)) do
      local needs = vim.tbl_map(function(argument) return ("<%s>"):format(argument.name) end, command.arguments or {})
      out[#out + 1] = {
        word = "/" .. command.name .. (#needs > 0 and " " or ""),
        menu = text.line(table.concat(needs, " ") .. " " .. (command.description or ""), 60),
      }
    end
    return out
  end
  for _, context in ipairs(result.contexts or result.files or {}) do
    local name = sign .. text.line(label(context))
    if sign == "@" then offered[name] = context end
    out[#out + 1] = { word = name .. " ", abbr = name, menu = text.line(context.description or context.type, 60) }
  end
  return out
end

local found -- by the first call of omnifunc: in the second, the word is not in the line any more

-- The omnifunc for CTRL-X CTRL-O, which cannot wait in the background.
function M.omnifunc(find_start, _)
  if find_start == 1 then
    local col, sign, query = word()
    found = { sign = sign, query = query }
    return col or -3
  end
  if server.state ~= "running" then return {} end
  local result = server.client:request_sync(methods[found.sign], { query = found.query }, 2000)
  return items(found.sign, found.query, result)
end

-- Offers completions while the user types such a word.
function M.attach(buf)
  local asked, last = 0, nil
  api.nvim_create_autocmd("InsertEnter", { buffer = buf, callback = function() last = nil end })
  api.nvim_create_autocmd({ "TextChangedI", "TextChangedP" }, {
    buffer = buf,
    callback = function()
      local col, sign, query = word()
      asked = asked + 1
      local mine = asked
      -- The same word again is one whose menu the user has closed, or whose completion was chosen.
      local same = last == vim.inspect({ col, sign, query })
      last = vim.inspect({ col, sign, query })
      if not col or same or server.state ~= "running" then return end
      server.request(methods[sign], { query = query }, function(err, result)
        local now = word()
        if err or mine ~= asked or now ~= col or not vim.startswith(api.nvim_get_mode().mode, "i") then return true end
        if api.nvim_get_current_buf() == buf then
          local completeopt = vim.o.completeopt
          vim.o.completeopt = "menuone,noinsert"
          vim.fn.complete(col + 1, items(sign, query, result))
          vim.o.completeopt = completeopt
        end
      end)
    end,
  })
end

-- Where the user's cursor is, outside the plugin's windows.
local function cursor_context()
  for _, win in ipairs(vim.list_extend({ vim.fn.win_getid(vim.fn.winnr("#")) }, api.nvim_tabpage_list_wins(0))) do
    local buf = win ~= 0 and api.nvim_win_get_buf(win) or 0
    local path = buf ~= 0 and api.nvim_buf_get_name(buf) or ""
    if path ~= "" and vim.bo[buf].buftype == "" then
      local row, col = unpack(api.nvim_win_get_cursor(win))
      local at = { line = row, character = col + 1 }
      return { type = "cursor", path = path, position = { start = at, ["end"] = at } }
    end
  end
end

-- The offered contexts whose inserted words are in the message.
function M.contexts(message)
  local out = {}
  for name, context in pairs(offered) do
    local from, to = message:find(name, 1, true)
    local next_char = to and message:sub(to + 1, to + 1)
    if from and not next_char:find("[%w_/%-]") then
      if context.type == "cursor" then context = cursor_context() end
      out[#out + 1] = context
    end
  end
  return out
end

return M
