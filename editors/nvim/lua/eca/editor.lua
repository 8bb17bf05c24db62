-- Answers the daemon's requests for diagnostics, definitions and references.
local server = require("eca.server")

local severities = { "error", "warning", "information", "hint" }

-- A file without diagnostics and without a language server never gets any, so the daemon need not wait for them.
local function is_checked(buf)
  return buf ~= -1 and (#vim.lsp.get_clients({ bufnr = buf }) > 0 or #vim.diagnostic.get(buf) > 0)
end

server.on_request("editor/getDiagnostics", function(params, answer)
  local buf
  if params.uri then
    buf = vim.fn.bufnr(vim.fn.fnameescape(vim.uri_to_fname(params.uri)))
    -- The daemon may have changed the file, and waits for the language servers' diagnostics of the new text.
    if buf ~= -1 and vim.api.nvim_buf_is_loaded(buf) then vim.cmd.checktime(buf) end
    if not is_checked(buf) then
      answer({ status = "no-server", message = "no language server for this file" })
      return
    end
  end
  local out = {}
  for _, d in ipairs(vim.diagnostic.get(buf)) do
    out[#out + 1] = {
      uri = vim.uri_from_bufnr(d.bufnr),
      severity = severities[d.severity],
      source = d.source,
      code = d.code,
      message = d.message,
      range = {
        start = { line = d.lnum, character = d.col },
        ["end"] = { line = d.end_lnum or d.lnum, character = d.end_col or d.col },
      },
    }
  end
  answer({ diagnostics = #out > 0 and out or {} })
end)

local function range_from_one(range)
  local function at(position) return { line = position.line + 1, character = position.character + 1 } end
  return { start = at(range.start), ["end"] = at(range["end"]) }
end

local function navigate(method)
  return function(params, answer)
    local buf = vim.fn.bufadd(vim.uri_to_fname(params.uri))
    vim.fn.bufload(buf)
    if vim.bo[buf].filetype == "" then vim.bo[buf].filetype = vim.filetype.match({ buf = buf }) or "" end
    local clients = vim.lsp.get_clients({ bufnr = buf, method = method })
    if #clients == 0 then
      local others = vim.lsp.get_clients({ bufnr = buf })
      local starting = vim.iter(others):any(function(client) return not client.initialized end)
      answer({ status = starting and "starting" or "no-server", message = "no language server for this file" })
      return
    end
    local request = {
      textDocument = { uri = params.uri },
      position = { line = params.position.line - 1, character = params.position.character - 1 },
      context = { includeDeclaration = params.includeDeclaration ~= false },
    }
    vim.lsp.buf_request_all(buf, method, request, function(results)
      local locations, failure = {}, nil
      for _, one in pairs(results) do
        failure = failure or (one.error or one.err)
        local found = one.result or {}
        found = (found.uri or found.targetUri) and { found } or found
        for _, location in ipairs(found) do
          local range = location.range or location.targetSelectionRange
          locations[#locations + 1] = { uri = location.uri or location.targetUri, range = range_from_one(range) }
        end
      end
      if #locations == 0 and failure then
        answer({ status = "error", message = tostring(failure.message) })
      else
        answer({ status = "success", locations = locations })
      end
    end)
  end
end

server.on_request("editor/getDefinition", navigate("textDocument/definition"))
server.on_request("editor/getReferences", navigate("textDocument/references"))
