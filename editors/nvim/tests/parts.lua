-- The parts that need no daemon.
local t = ...

t.test("text: what could act is shown as characters", {}, function(e)
  local hostile = "a\27[31mb\7\0c\127 \194\155 \226\128\174x\226\128\139y\226\129\166z\239\187\191 é漢\tt\r\nn"
  t.equal(
    e:lua([[return require("eca.text").clean(...)]], hostile),
    "a␛[31mb␇␀c␡ <9b> <202e>x<200b>y<2066>z<feff> é漢\tt\nn"
  )
  t.equal(e:lua([[return require("eca.text").status("50% %{x}")]]), "50%% %%{x}")
end)

t.test("rpc: messages in any pieces", {}, function(e)
  local got = e:lua([[
    local out = {}
    local stream = ""
    for i, body in ipairs({ '{"a":1}', '{"b":"é"}', string.rep("x", 70000) }) do
      local eol = i == 2 and "\n" or "\r\n"
      stream = stream .. "Content-Length: " .. #body .. eol .. "Content-Type: x" .. eol .. eol .. body
    end
    for size = 1, 40 do
      local seen = {}
      local feed = require("eca.rpc").parser(function(body) table.insert(seen, #body) end, error)
      for at = 1, #stream, size do feed(stream:sub(at, at + size - 1)) end
      out[size] = table.concat(seen, ",")
    end
    return out
  ]])
  for _, one in ipairs(got) do
    t.equal(one, "7,10,70000")
  end
end)

t.test("rpc: what is not the protocol is passed over", {}, function(e)
  local got = e:lua([[
    local seen, garbage = {}, 0
    local feed = require("eca.rpc").parser(function(body) table.insert(seen, body) end, function() garbage = garbage + 1 end)
    feed("Usage: something\n\nContent-Length: 2\r\n\r\n{}warning: x\nContent-Length: 3\r\n\r\n{ }")
    feed("Content-Length: 99999999999999\r\n\r\n" .. string.rep("z", 70000) .. "\nContent-Length: 4\r\n\r\n{  }")
    return { seen, garbage > 2 }
  ]])
  t.equal(got, { { "{}", "{ }", "{  }" }, true })
end)

t.test("diff: applied and taken back", {}, function(e)
  local function apply(...)
    return e:lua([[local lines, why = require("eca.diff").apply(...) return { lines or false, why }]], ...)
  end
  local diff = "@@ -1,3 +1,3 @@\n a\n--- b\n+++ B\n c\n@@ -9,2 +9,3 @@\n i\n+new\n j"
  local before = { "a", "-- b", "c", "d", "e", "f", "g", "h", "i", "j" }
  local after = { "a", "++ B", "c", "d", "e", "f", "g", "h", "i", "new", "j" }
  t.equal(apply(before, diff, false)[1], after)
  t.equal(apply(after, diff, true)[1], before)
  t.equal(apply({}, "--- /dev/null\n+++ x\n@@ -0,0 +1,2 @@\n+x\n+y", false)[1], { "x", "y" })
  t.contains(apply({ "z" }, diff, false)[2], "line 1")
end)
