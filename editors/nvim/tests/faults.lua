-- What goes wrong: the user sees what happened and what to do.
local t = ...
local uv = vim.uv

local function prompt_returns(e)
  t.await(
    "the prompt to come back",
    function()
      return e:lua([[return vim.api.nvim_buf_get_lines(require("eca.ui").latest.prompt, 0, -1, false)[1] ]]) == "hello"
    end
  )
end

t.test("no program", { cmd = { "/nowhere/eca" } }, function(e)
  e:lua([[vim.cmd("Eca")]])
  e:type("ihello<CR><Esc>")
  e:says('cannot find the program "/nowhere/eca"')
  e:says('require("eca").setup({ cmd = {')
  e:shows("The prompt was not sent")
  prompt_returns(e)
  e:lua([[vim.cmd("checkhealth eca")]])
  t.contains(
    e:lua([[return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")]]),
    "cannot find the program"
  )
end)

t.test("a program that is not eca, and one that is too old", { cmd = t.fake("other") }, function(e)
  e:lua([[vim.cmd("Eca")]])
  e:says('is not eca: --version printed "gcc 12.2.0"')
  e:lua([[require("eca").setup({ cmd = ... }) vim.cmd("Eca restart")]], t.fake("old"))
  e:says("is eca 0.0.9, and the plugin needs 0.1.0 or newer")
end)

t.test("a daemon that ends while it starts", { cmd = t.fake("dies") }, function(e)
  e:lua([[vim.cmd("Eca")]])
  e:says("ended with code 3 while it started")
  e:says("cannot read config.json: line 3")
  e:says(":Eca log")
end)

t.test("a daemon that does not answer", { cmd = t.fake("hangs"), start_timeout = 500 }, function(e)
  e:lua([[vim.cmd("Eca")]])
  e:says("did not answer within")
  e:says(":Eca restart")
  t.equal(e:lua([[return require("eca.server").client == nil]]), true)
end)

t.test("a request that is not answered", { cmd = t.fake("mute"), request_timeout = 500 }, function(e)
  e:lua([[vim.cmd("Eca")]])
  e:type("ihello<CR><Esc>"):shows("no answer to chat/prompt")
  prompt_returns(e)
end)

t.test("malformed messages: reported once, and the rest works", { cmd = t.fake("malformed") }, function(e)
  e:prompt("hello"):shows("alive")
  e:says("still here")
  e:says("not JSON")
  e:says("that the plugin cannot use")
  t.equal(e:lua([[return vim.v.errmsg]]), "")
end)

t.test("a login in the browser is announced when it is done", { cmd = t.fake("login") }, function(e)
  e:lua([[require("eca.server").login_pending = "x" vim.cmd("Eca")]])
  e:says("logged in to x")
end)

t.test("a daemon that is killed in mid-stream", {}, function(e)
  e:prompt("slow"):shows("tick tick")
  local before = e:lua([[return require("eca.ui").latest.id]])
  uv.kill(e:lua([[return require("eca.server").client.pid]]), "sigkill")
  e:shows("The turn was cut off.")
  e:shows("the daemon was killed by signal 9")
  e:idle()
  -- The next prompt starts it again, in the same chat.
  e:prompt("hello"):shows("Hello, **world**.")
  e:idle()
  t.equal(e:lua([[return require("eca.ui").latest.id]]), before)
  t.equal(select(2, e:chat():gsub("Hello, %*%*world", "")), 1)
end)

t.test("a daemon that is killed while a call waits", {}, function(e)
  e:prompt("write"):asks("new.txt")
  uv.kill(e:lua([[return require("eca.server").client.pid]]), "sigkill")
  e:shows("was killed by signal 9")
  t.equal(e:float(), "")
  e:lua([[vim.cmd("Eca accept")]])
  e:says("no tool call waits for approval")
  t.equal(e:file("new.txt"), nil)
  e:lua([[vim.cmd("Eca restart")]])
  e:says("is running")
end)

t.test("no provider: the welcome says what to do", { config = { fetchModels = false } }, function(e)
  e:lua([[vim.cmd("Eca")]])
  e:shows("/login")
end)

t.test(
  "a model that cannot be used",
  { config = { fetchModels = false, defaultModel = "anthropic/claude-x" } },
  function(e)
    e:prompt("hello"):idle()
    t.await("a reason in the chat", function()
      local chat = e:chat():gsub(".*❯", "")
      return chat:find("login", 1, true) or chat:find("key", 1, true)
    end, function() return e:chat() .. e:said() end)
  end
)

t.test("errors of the provider are shown, and the next prompt works", {}, function(e)
  e:prompt("unauthorized"):shows("bad key")
  e:idle()
  e:prompt("broken"):shows("no such thing")
  e:idle()
  for _, words in ipairs({ "limited", "overloaded" }) do
    e:prompt(words)
    t.await("the next attempt", function()
      local bar = e:bar()
      return bar:find("attempt %d") or bar:find("answered 500", 1, true)
    end, function() return e:bar() end)
    e:stop()
  end
  e:prompt("hello"):shows("Hello, **world**.")
end)

t.test("leaving Neovim ends the daemon", {}, function(e)
  e:prompt("hello"):idle()
  local pid = e:lua([[return require("eca.server").client.pid]])
  pcall(vim.rpcnotify, e.channel, "nvim_command", "qall!")
  t.await("the daemon to end", function() return uv.kill(pid, 0) ~= 0 end)
end)
