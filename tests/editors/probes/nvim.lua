-- Run by test_nvim.py after the editor's own configuration and a file are loaded. Writes what it
-- sees to $FUNES_PROBE_OUT, one JSON object a line; the test judges it. Neovim 0.7 to 0.11.
local out = assert(io.open(vim.env.FUNES_PROBE_OUT, "w"))
local modern = vim.fn.has("nvim-0.11") == 1
local buffer = vim.api.nvim_get_current_buf()
local window = vim.api.nvim_get_current_win()

local function tell(name, value)
  if value == nil then
    value = vim.NIL
  end
  out:write(vim.fn.json_encode({ name = name, value = value }) .. "\n")
  out:flush()
end

-- What goes wrong in one step is told and does not keep the others from running.
local function step(name, run)
  local ok, value = pcall(run)
  tell(name, ok and value or { failed = tostring(value) })
end

local function our_client()
  local attached = modern and vim.lsp.get_clients({ bufnr = buffer })
    or vim.lsp.buf_get_clients(buffer)
  for _, client in pairs(attached) do
    if client.name == "funes" and client.initialized ~= false then
      return client
    end
  end
end

local client
if not vim.wait(30000, function()
  client = our_client()
  return client ~= nil
end, 20) then
  tell("failed", "no client named funes came")
  vim.cmd("cquit")
end

local function ask(method, params)
  local answer, why
  if modern then
    answer, why = client:request_sync(method, params, 20000, buffer)
  else
    answer, why = client.request_sync(method, params, 20000, buffer)
  end
  if not answer then
    return { failed = why or "no answer" }
  end
  local err = answer.err or answer.error
  if err then
    return { error = { code = err.code, message = err.message, data = err.data } }
  end
  return { result = answer.result == nil and vim.NIL or answer.result }
end

local function notify(method, params)
  if modern then
    client:notify(method, params)
  else
    client.notify(method, params)
  end
end

local function wait_for(what)
  local found
  vim.wait(15000, function()
    found = what()
    return found
  end, 20)
  return found
end

local function to_word(word)
  vim.api.nvim_set_current_win(window)
  vim.api.nvim_set_current_buf(buffer)
  vim.fn.cursor(1, 1)
  assert(vim.fn.search(word) > 0, word)
end

local function floating_lines()
  for _, one in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(one).relative ~= "" then
      local shown = vim.api.nvim_win_get_buf(one)
      local lines = vim.api.nvim_buf_get_lines(shown, 0, -1, false)
      vim.api.nvim_win_close(one, true)
      return lines
    end
  end
end

local document = { uri = vim.uri_from_bufnr(buffer) }
local version = vim.version()

tell("version", ("%d.%d.%d"):format(version.major, version.minor, version.patch))
tell("encoding", client.offset_encoding)
tell("capabilities", vim.tbl_keys(client.server_capabilities))

step("recall", function()
  return ask("funes/recall", { query = vim.env.FUNES_PROBE_QUERY, k = 3 })
end)
step("recall_bad", function()
  return ask("funes/recall", { query = 5 })
end)
step("status", function()
  return ask("funes/status", vim.empty_dict())
end)

step("hover", function()
  to_word(vim.env.FUNES_PROBE_KNOWN)
  vim.lsp.buf.hover()
  return wait_for(floating_lines)
end)

step("lenses", function()
  return ask("textDocument/codeLens", { textDocument = document })
end)
step("lens_titles", function()
  vim.api.nvim_set_current_buf(buffer)
  if modern then
    vim.lsp.codelens.refresh({ bufnr = buffer })
  else
    vim.lsp.codelens.refresh()
  end
  return wait_for(function()
    local titles = {}
    for _, lens in ipairs(vim.lsp.codelens.get(buffer)) do
      if lens.command then
        table.insert(titles, lens.command.title)
      end
    end
    return #titles > 0 and titles
  end)
end)
-- What a person sees: virtual text beside the line.
step("lens_shown", function()
  return wait_for(function()
    for name, space in pairs(vim.api.nvim_get_namespaces()) do
      if name:find("codelens") then
        local marks = vim.api.nvim_buf_get_extmarks(buffer, space, 0, -1, { details = true })
        for _, mark in ipairs(marks) do
          for _, chunk in ipairs(mark[4].virt_text or {}) do
            if chunk[1]:find("%w") and not chunk[1]:find("Unresolved") then
              return chunk[1]
            end
          end
        end
      end
    end
  end)
end)

step("symbols", function()
  vim.lsp.buf.workspace_symbol(vim.env.FUNES_PROBE_TITLE)
  return wait_for(function()
    local texts = {}
    for _, item in ipairs(vim.fn.getqflist()) do
      table.insert(texts, item.text)
    end
    return #texts > 0 and texts
  end)
end)
vim.cmd("cclose")

step("actions", function()
  to_word("def get")
  local line = vim.fn.line(".") - 1
  return ask("textDocument/codeAction", {
    textDocument = document,
    range = { start = { line = line, character = 0 }, ["end"] = { line = line, character = 7 } },
    context = { diagnostics = {} },
  })
end)

-- Does something after which another document is shown, and describes that.
local function opened_by(run)
  local from = vim.api.nvim_get_current_buf()
  run()
  wait_for(function()
    return vim.api.nvim_get_current_buf() ~= from
      and table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false)) ~= ""
  end)
  return {
    name = vim.api.nvim_buf_get_name(0),
    lines = vim.api.nvim_buf_get_lines(0, 0, 40, false),
    readonly = vim.bo.readonly,
  }
end

-- A person chooses among what is offered.
vim.ui.select = function(items, options, choose)
  for number, item in ipairs(items) do
    if options.format_item(item):find("Why") then
      return choose(item, number)
    end
  end
end
step("action_run", function()
  to_word(vim.env.FUNES_PROBE_KNOWN)
  return opened_by(vim.lsp.buf.code_action)
end)
vim.api.nvim_set_current_win(window)
vim.api.nvim_set_current_buf(buffer)

step("lens_run", function()
  vim.fn.cursor(1, 1)
  return opened_by(vim.lsp.codelens.run)
end)
-- From a line of the document that is now shown to the turn it names.
step("definition", function()
  assert(vim.fn.search("^→ funes get") > 0, "no line leads on")
  return opened_by(function()
    if vim.env.FUNES_PROBE_MORE then
      vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes("<CR>", true, false, true), "x", false)
      return
    end
    local shown = vim.api.nvim_get_current_buf()
    wait_for(function()
      return #vim.lsp.get_clients({ name = "funes", bufnr = shown }) > 0
    end)
    vim.lsp.buf.definition()
  end)
end)
vim.api.nvim_set_current_win(window)
vim.api.nvim_set_current_buf(buffer)

-- The editor keeps progress by itself; looked at through its own handler.
local kinds = {}
local before = client.handlers["$/progress"] or vim.lsp.handlers["$/progress"]
client.handlers["$/progress"] = function(err, params, ...)
  if type(params.value) == "table" and params.value.kind then
    table.insert(kinds, { token = params.token, kind = params.value.kind })
  end
  return before(err, params, ...)
end
step("index", function()
  return ask("funes/index", vim.empty_dict())
end)
step("progress", function()
  wait_for(function()
    return #kinds > 0 and kinds[#kinds].kind == "end"
  end)
  return kinds
end)

step("settings", function()
  client.config.settings = { funes = { recall = { k = 1 } } }
  if modern then
    client.settings = client.config.settings
  end
  notify("workspace/didChangeConfiguration", { settings = client.config.settings })
  return wait_for(function()
    local answer = ask("funes/recall", { query = vim.env.FUNES_PROBE_QUERY })
    return answer.result and #answer.result.hits == 1 and { hits = 1 }
  end)
end)

if vim.env.FUNES_PROBE_MORE then
  _G.funes_probe = { tell = tell, step = step, wait_for = wait_for, to_word = to_word }
  dofile(vim.env.FUNES_PROBE_MORE)
end

local id = client.id
if modern then
  client:stop()
else
  client.stop()
end
tell("stopped", wait_for(function()
  return vim.lsp.get_client_by_id(id) == nil
end) or false)
tell("end", true)
out:close()
vim.cmd("qall!")
