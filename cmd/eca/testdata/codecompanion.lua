-- Plays a user of CodeCompanion in a Neovim without a screen. Arguments of the environment: PLUGIN, PLENARY, ECA (the program), OUT (where the results go, as JSON).
local env = vim.env
vim.opt.rtp:prepend(env.PLENARY)
vim.opt.rtp:prepend(env.PLUGIN)
vim.opt.swapfile = false

local helpers = require("codecompanion.adapters.acp.helpers")
require("codecompanion").setup({
  opts = { log_level = "DEBUG" },
  interactions = { chat = { adapter = "eca" } },
  adapters = {
    acp = {
      eca = function()
        return {
          name = "eca",
          formatted_name = "ECA",
          type = "acp",
          roles = { llm = "assistant", user = "user" },
          opts = {},
          commands = { default = { env.ECA, "acp" } },
          defaults = { mcpServers = {}, timeout = 120000 },
          parameters = {
            protocolVersion = 1,
            clientCapabilities = { fs = { readTextFile = true, writeTextFile = true } },
            clientInfo = { name = "CodeCompanion.nvim", version = "1.0.0" },
          },
          handlers = {
            setup = function() return true end,
            auth = function() return false end,
            form_messages = helpers.form_messages,
            on_exit = function() end,
          },
        }
      end,
    },
  },
})

local results = { said = {} }

local function await(what, condition)
  if not vim.wait(120000, condition, 20) then
    error("waited for " .. what)
  end
end

local function text(chat)
  return table.concat(vim.api.nvim_buf_get_lines(chat.bufnr, 0, -1, false), "\n")
end

local function opened()
  local chat = require("codecompanion").chat()
  await("the connection", function()
    return chat.acp_connection and chat.acp_connection:is_connected()
  end)
  return chat
end

local function count(haystack, needle)
  return select(2, haystack:gsub(vim.pesc(needle), ""))
end

-- submit says something; done waits for the end of the turn and keeps what the buffer has of it.
local function submit(chat, words)
  local last = vim.api.nvim_buf_line_count(chat.bufnr)
  vim.api.nvim_buf_set_lines(chat.bufnr, last - 1, last, false, { words })
  local turn = { name = words, from = last, cycle = chat.cycle }
  chat:submit()
  return turn
end

local function done(chat, turn)
  await("the end of " .. turn.name, function()
    return chat.cycle > turn.cycle and chat.current_request == nil
  end)
  results.said[turn.name] = table.concat(vim.api.nvim_buf_get_lines(chat.bufnr, turn.from, -1, false), "\n")
end

-- choose waits until it is asked for one more permission, and presses the key of an answer.
local function choose(chat, turn, label)
  await("the question of " .. turn.name, function()
    return text(chat):find("Please select an option:", turn.at or #turn.before, true) ~= nil
  end)
  local key = text(chat):sub(turn.at or #turn.before):match("%- `(%w+)` %- " .. label)
  turn.at = #text(chat)
  vim.api.nvim_set_current_win(vim.fn.bufwinid(chat.bufnr))
  vim.api.nvim_feedkeys(key, "mx", false)
end

local function turn(chat, words, ...)
  local before = text(chat)
  local t = submit(chat, words)
  t.before = before
  for _, label in ipairs({ ... }) do
    choose(chat, t, label)
  end
  done(chat, t)
end

-- answer calls what asks the agent, as the plugin does: in a coroutine of its own.
local function answer(what, ask)
  local got
  require("codecompanion.utils.async").sync(function() got = { ask() } end)()
  await(what, function() return got ~= nil end)
  return got[1]
end

local function play()
  vim.cmd.edit("open.txt")
  local chat = opened()
  turn(chat, "hello")
  turn(chat, "edit open", "Accept")
  turn(chat, "edit dos", "Accept")
  vim.cmd("wincmd p")
  vim.cmd.edit("dosopen.txt")
  turn(chat, "edit dosopen", "Accept")
  turn(chat, "both", "Accept")
  turn(chat, "shell", "Accept")
  turn(chat, "refuse", "Reject")
  turn(chat, "ask")
  turn(chat, "fail")
  turn(chat, "hello again")

  local t = submit(chat, "slow")
  await("the first drip", function() return count(text(chat), "drip") > 0 end)
  chat:stop()
  done(chat, t)
  turn(chat, "and now")

  results.title = chat.title
  results.commands = #require("codecompanion.interactions.chat.acp.commands").get_commands_for_buffer(chat.bufnr)
  results.model = chat.acp_connection:get_models().currentModelId
  results.mode = answer("the mode", function() return chat.acp_connection:set_config_option("mode", "plan") end)

  -- Another chat takes the first up again.
  local id = chat.acp_connection.session_id
  local second = opened()
  results.listed = false
  for _, s in ipairs(answer("the list", function() return second.acp_connection:session_list() end)) do
    results.listed = results.listed or s.sessionId == id
  end
  local updates = {}
  results.loaded = answer("the session", function()
    return second.acp_connection:load_session(id, {
      on_session_update = function(u) table.insert(updates, u) end,
    })
  end)
  require("codecompanion.interactions.chat.acp.render").restore_session(second, updates)
  results.restored = text(second)
end

vim.schedule(function()
  local ok, err = xpcall(play, debug.traceback)
  results.error = (not ok) and err or nil
  results.log = {}
  for line in io.lines(vim.fs.joinpath(vim.fn.stdpath("log"), "codecompanion.log")) do
    table.insert(results.log, line)
  end
  local f = assert(io.open(env.OUT, "w"))
  f:write(vim.json.encode(results))
  f:close()
  vim.cmd("qall!")
end)
