-- Plays a user of eca-nvim in a Neovim without a screen. Arguments of the environment: PLUGIN, NUI (its
-- library), ECA (the program), OUT (where the results go, as JSON).
local env = vim.env
vim.opt.rtp:prepend(env.NUI)
vim.opt.rtp:prepend(env.PLUGIN)
vim.opt.swapfile = false
vim.o.lines, vim.o.columns = 60, 200

local results = { approvals = {}, said = {} }

local function await(what, condition)
  if not vim.wait(60000, condition, 20) then
    error("waited for " .. what)
  end
end

local function play()
  require("eca").setup({ server_path = env.ECA, behaviour = { auto_start_server = true } })
  local eca = require("eca")
  require("eca.api").chat()
  local sidebar = eca.get()
  await("the models", function()
    return sidebar.mediator:selected_model() ~= nil
  end)
  results.model, results.welcome = sidebar.mediator:selected_model(), sidebar.mediator:welcome_message()

  local chats, ended = {}, 0
  require("eca.observer").subscribe("test", function(message)
    local content = message.params and message.params.content
    if content then
      chats[message.params.chatId] = true
    end
    if content and content.type == "progress" and content.state == "finished" then
      ended = ended + 1
    end
  end)

  -- approval waits for the window that asks, keeps what it shows and presses a key.
  local function approval(name, key)
    local win
    await("the approval of " .. name, function()
      for _, w in ipairs(vim.api.nvim_list_wins()) do
        local title = vim.api.nvim_win_get_config(w).title
        if title and title[1][1]:find("Approve Tool Call", 1, true) then
          win = w
          return true
        end
      end
    end)
    local lines = vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(win), 0, -1, false)
    results.approvals[name] = vim.api.nvim_win_get_config(win).title[1][1] .. "\n" .. table.concat(lines, "\n")
    vim.api.nvim_set_current_win(win)
    vim.api.nvim_feedkeys(key, "xt", false)
  end

  local function say(words, key)
    local before = ended
    sidebar:_send_message(words)
    if key then
      approval(words, key)
    end
    await("the end of " .. words, function()
      return ended > before
    end)
    vim.wait(300, function() return false end, 50) -- the plugin draws what it was sent a moment later
    results.said[words] = table.concat(vim.api.nvim_buf_get_lines(sidebar.containers.chat.bufnr, 0, -1, false), "\n")
  end

  say("hello")
  say("write", "y")
  say("shell", "y")
  say("refuse", "n")
  say("last")
  results.chats = vim.tbl_keys(chats)
  local process = eca.server.process
  eca.server:stop()
  process:wait(60000)
end

local ok, err = xpcall(play, debug.traceback)
if not ok then
  results.error = err
end
local out = assert(io.open(env.OUT, "w"))
out:write(vim.json.encode(results))
out:close()
vim.cmd("qall!")
