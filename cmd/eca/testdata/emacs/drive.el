;;; drive.el --- Uses eca in Emacs as a person does -*- lexical-binding: t; -*-

;;; Code:

(load (expand-file-name "user" (file-name-directory load-file-name)) nil t)

(drive-step "start"
  (drive-start)
  (drive-in-chat (unless (and (eca-chat--model) (equal "code" (eca-chat--agent)))
                   (drive-fail "model %s, agent %s" (eca-chat--model) (eca-chat--agent)))))

(drive-step "a streamed answer with reasoning"
  (drive-type "hello")
  (drive-await-text "Hi \\*\\*there\\*\\*")
  (drive-await-idle)
  (drive-expect "Thought"))

(drive-step "two windows on one chat"
  (drive-in-chat
   (let* ((other (seq-find (lambda (w) (not (window-parameter w 'window-side))) (window-list)))
          (file (window-buffer other))
          (before (how-many "Hi \\*\\*there" (point-min))))
     (set-window-buffer other (drive-chat))
     (drive-type "hello")
     (drive-await "the end of the turn" (lambda () (> (how-many "Hi \\*\\*there" (point-min)) before)))
     (drive-await-idle)
     (unless (= (how-many "Hi \\*\\*there" (point-min)) (1+ before))
       (drive-fail "the answer is shown %d times" (- (how-many "Hi \\*\\*there" (point-min)) before)))
     (unless (= 2 (length (get-buffer-window-list (drive-chat))))
       (drive-fail "the chat is in %d windows" (length (get-buffer-window-list (drive-chat)))))
     (set-window-buffer other file))))

(drive-step "completion of commands"
  (drive-in-chat
   (goto-char (point-max))
   (insert "/doc")
   (let ((capf (eca-chat-completion-at-point)))
     (unless (member "doctor" (all-completions "doc" (nth 2 capf)))
       (drive-fail "%S" (all-completions "" (nth 2 capf)))))
   (eca-chat-clear-prompt)))

(drive-step "completion of files"
  (drive-in-chat
   (goto-char (point-max))
   (insert "@mai")
   (let ((capf (eca-chat-completion-at-point)))
     (unless (member "main.go" (all-completions "mai" (nth 2 capf)))
       (drive-fail "%S" (all-completions "" (nth 2 capf)))))
   (eca-chat-clear-prompt)))

(drive-step "an edit that is accepted"
  (drive-type "edit it")
  (drive-await-text "Accept and remember")
  (drive-expect "Editing main\\.go \\+1 -1")
  (drive-in-chat (eca-chat-tool-call-accept-all))
  (drive-await-text "Edited it\\.")
  (drive-await-idle))

(drive-step "a command that is rejected"
  (drive-type "run it")
  (drive-await-text "Accept and remember touch")
  (drive-in-chat (eca-chat-tool-call-reject-next))
  (drive-await-text "Tell ECA what to do differently for the rejected tool(s)")
  (drive-await-idle))

(drive-step "the words after a rejection, which are the next prompt"
  (drive-type "use another command")
  (drive-await-text "Another command it is\\.")
  (drive-await-idle))

(drive-step "steering"
  (drive-type "consult it")
  (drive-await-text "sh: t 🚧")
  (drive-type "hurry")
  (drive-await "steered prompt" (lambda () (buffer-local-value 'eca-chat--steered-prompt (drive-chat))))
  (drive-in-chat (eca-chat-tool-call-accept-all))
  (drive-await-text "Hurried\\.")
  (drive-await-idle))

(drive-step "a tool of an MCP server, which is stopped and started"
  (drive-type "consult it")
  (drive-await "call" (lambda () (string-match-p "sh: t 🚧\\(.\\|\n\\)*\\'" (drive-text))))
  (drive-in-chat (eca-chat-tool-call-accept-all))
  (drive-await-text "Consulted: from afar\\.")
  (drive-await-idle)
  (dolist (step '((stop . "stopped") (start . "running")))
    (let ((server (lambda () (eca-get (eca--session-tool-servers (drive-session)) "sh"))))
      (eca-mcp--notify-server-action (drive-session) (funcall server) (car step))
      (drive-await (cdr step) (lambda () (equal (cdr step) (plist-get (funcall server) :status)))))))

(drive-step "another model and agent"
  (drive-in-chat
   (drive-choosing "mini" (eca-chat-select-model))
   (drive-choosing "plan" (eca-chat-select-agent)))
  (drive-type "run it")
  (drive-await-text "Never said\\.") ; plan may not run it, and does not ask
  (drive-await-idle)
  (drive-in-chat
   (unless (string-match-p "mini" (eca-chat--model)) (drive-fail "the model is %s" (eca-chat--model)))
   (drive-choosing "code" (eca-chat-select-agent))))

(drive-step "errors of the provider"
  (drive-type "unauthorized")
  (drive-await-text "bad key")
  (drive-await-idle)
  (dolist (words '("limited" "overloaded"))
    (drive-type words)
    (drive-await "retry" (lambda () (string-match-p "attempt [0-9]" (buffer-local-value 'eca-chat--progress-text (drive-chat)))))
    (drive-in-chat (eca-chat-stop-prompt))
    (drive-await-idle)))

(drive-step "a rollback with files"
  (drive-type "write it")
  (drive-await-text "Accept and remember")
  (drive-in-chat (eca-chat-tool-call-accept-all))
  (drive-await-text "Written\\.")
  (drive-await-idle)
  (unless (file-exists-p (drive-beside "new.txt")) (drive-fail "new.txt is not there"))
  (drive-in-chat
   (let* ((prompts (seq-filter (lambda (o) (overlay-get o 'eca-chat--user-message-id)) (overlays-in (point-min) (point-max))))
          (last (car (sort prompts (lambda (a b) (> (overlay-start a) (overlay-start b)))))))
     (drive-choosing "\\`1" (eca-chat--rollback (drive-session) (overlay-get last 'eca-chat--user-message-id) "write it"))))
  (drive-await "rollback" (lambda () (not (file-exists-p (drive-beside "new.txt")))))
  (drive-await "prompt again" (lambda () (drive-in-chat (equal "write it" (eca-chat--prompt-content)))))
  (drive-in-chat (eca-chat-clear-prompt))
  (drive-expect "Never said\\.")
  (when (string-match-p "Written\\." (drive-text)) (drive-fail "the messages are still there")))

(drive-step "a question"
  (drive-type "ask me")
  (drive-await "question" (lambda () (buffer-local-value 'eca-chat--pending-question (drive-chat))))
  (drive-expect "Q: Which colour\\?\\(.\\|\n\\)*Red")
  (drive-type "green")
  (drive-await-text "You said: .*green")
  (drive-await-idle))

(drive-step "a subagent"
  (drive-type "delegate it")
  (drive-await-text "The child said: \\(.\\|\n\\)*All is well")
  (drive-await-idle)
  (drive-expect "general: looking around"))

(drive-step "a list of tasks that fails"
  (drive-type "misplan it")
  (drive-await-text "No plan\\.")
  (drive-await-idle)
  (when (string-match-p "Creating tasks" (drive-text)) (drive-fail "the list is never done")))

(drive-step "a list of tasks"
  (drive-type "plan it")
  (drive-await-text "Planned\\.")
  (drive-await-idle)
  (drive-expect "Task: Doing the first (0/2)"))

(drive-step "a background job"
  (drive-type "watch it")
  (drive-await-text "Accept and remember")
  (drive-in-chat (eca-chat-tool-call-accept-all))
  (drive-await-text "It is watched\\.")
  (drive-await-idle)
  (let ((job (drive-await "job" (lambda () (car (eca--session-jobs (drive-session)))))))
    (unless (and (equal "my watcher" (plist-get job :summary)) (string-match-p "echo watching" (plist-get job :label)))
      (drive-fail "job %S" job))
    (eca-api-request-async (drive-session) :method "jobs/kill" :params (list :job-id (plist-get job :id)))
    (drive-await "kill" (lambda () (equal "killed" (plist-get (car (eca--session-jobs (drive-session))) :status))))))

(drive-step "a stop in mid-stream"
  (drive-type "go on for ever")
  (drive-await-text "tick tick")
  (drive-in-chat (eca-chat-stop-prompt))
  (drive-await-text "Prompt stopped")
  (drive-await-idle))

(drive-step "a fork and a new name"
  (drive-in-chat (eca-chat-fork))
  (drive-await "second chat" (lambda () (= 2 (length (eca--session-chats (drive-session))))))
  (drive-in-chat (cl-letf (((symbol-function 'read-string) (lambda (&rest _) "The day")))
                   (eca-chat-rename))))

(drive-step "a restart, and the chat again, page by page"
  (with-current-buffer (drive-chat) (eca-stop))
  (drive-start)
  (drive-in-chat
   (setq eca-chat-history-page-size 5)
   (drive-choosing "\\`The day\\'" (eca-chat-resume)))
  (drive-await-text "Prompt stopped")
  (while (buffer-local-value 'eca-chat--history-before-cursor (drive-chat))
    (let ((before (buffer-local-value 'eca-chat--history-before-cursor (drive-chat))))
      (drive-in-chat (eca-chat-load-older-history))
      (drive-await "older page" (lambda () (not (equal before (buffer-local-value 'eca-chat--history-before-cursor (drive-chat))))))))
  (dolist (shown '("Hi \\*\\*there" "Editing main\\.go \\+1 -1" "You said: .*green" "All is well" "Planned\\."))
    (drive-expect shown))
  (when (string-match-p "Preparing\\|⏳" (drive-text)) (drive-fail "a call never ends")))

(drive-step "the server is killed in mid-stream, and started again"
  (drive-type "go on for ever")
  (drive-await "words" (lambda () (string-match-p "tick tick \\'\\|tick tick" (drive-text))))
  (let ((chat (drive-chat)))
    (signal-process (eca--session-process (drive-session)) 'SIGKILL)
    (drive-await "end" (lambda () (null (drive-session))))
    (drive-start)
    (drive-in-chat (drive-choosing "\\`The day\\'" (eca-chat-resume)))
    (drive-await-text "Prompt stopped")
    (drive-type "hello")
    (drive-await-idle)))

(drive-step "views of servers, providers and jobs"
  (with-current-buffer (drive-chat)
    (eca-mcp-details)
    (eca-providers)
    (eca-jobs))
  (drive-await "providers" (lambda () (eca--session-providers (drive-session))))
  (dolist (view '(("mcps" . "ECA") ("providers" . "OpenAI") ("jobs" . "Background Jobs")))
    (drive-await (car view)
                 (lambda ()
                   (seq-some (lambda (b)
                               (and (string-match-p (format "eca-settings.*%s" (car view)) (buffer-name b))
                                    (with-current-buffer b (string-match-p (cdr view) (buffer-string)))))
                             (buffer-list))))))

(drive-step "nothing went wrong"
  (dolist (buffer (buffer-list))
    (when (string-match-p "emacs-errors" (buffer-name buffer))
      (drive-fail "the plugin reports errors")))
  (with-current-buffer (drive-chat) (eca-stop)))

(princ "ALL IS WELL\n")

;;; drive.el ends here
