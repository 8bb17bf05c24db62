;;; bad.el --- What goes wrong with eca in Emacs -*- lexical-binding: t; -*-

;; With our add-on: a program that is missing or is not eca, a server that dies, hangs, or sends
;; nonsense, no provider, and what a model writes.  BAD_DAEMON starts one that misbehaves.

;;; Code:

(load (expand-file-name "user" (file-name-directory load-file-name)) nil t)
(add-to-list 'load-path (getenv "BAD_GUARD"))
(require 'eca-guard)
(setq eca-api-response-timeout 5
      drive-patience 20)

(defvar bad-warnings ""
  "What the user was warned of.")

(advice-add 'display-warning :override
            (lambda (_type text &rest _) (setq bad-warnings (concat bad-warnings text "\n"))))

(defun bad-expect-warning (&rest regexps)
  "Wait until the user is warned of all REGEXPS."
  (dolist (regexp regexps)
    (drive-await (format "warning %s in %s" regexp bad-warnings) (lambda () (string-match-p regexp bad-warnings))))
  (setq bad-warnings ""))

(defun bad-start (&rest command)
  "Start COMMAND as the server."
  (setq eca-custom-command command)
  (with-current-buffer drive-file (eca)))

(defun bad-start-chat (&rest command)
  "Start COMMAND as the server, and await its chat."
  (apply #'bad-start command)
  (drive-await "chat" (lambda () (and (drive-session) (eq 'started (eca--session-status (drive-session))) (buffer-live-p (drive-chat))))))

(defun bad-stop ()
  "Stop the server."
  (with-current-buffer drive-file (eca-stop))
  (drive-await "end" (lambda () (null (drive-session)))))

(drive-step "no program"
  (let ((said (condition-case err (progn (bad-start "/nowhere/eca" "server") "nothing") (user-error (error-message-string err)))))
    (unless (string-match-p "cannot find the program \"/nowhere/eca\": correct .eca-custom-command." said) (drive-fail "%s" said))))

(drive-step "a program that is not eca"
  (bad-start "sh" "-c" "echo 'unknown command: server' >&2; exit 1")
  (bad-expect-warning "exited abnormally with code 1" "unknown command: server" "M-x eca starts it again")
  (when (drive-session) (drive-fail "the session is still there")))

(drive-step "a server that dies"
  (bad-start (getenv "BAD_DAEMON") "dies")
  (bad-expect-warning "exited abnormally with code 3"))

(drive-step "a server that does not answer, and is stopped"
  (setq eca-guard-start-timeout 1)
  (bad-start (getenv "BAD_DAEMON") "hangs")
  (bad-expect-warning "did not answer within 1 s.*hangs.*M-x eca-restart")
  (bad-stop)
  (setq eca-guard-start-timeout 30))

(drive-step "messages that are malformed are reported once, and the others are shown"
  (bad-start-chat (getenv "BAD_DAEMON") "malformed")
  (dotimes (i 2)
    (drive-type "hello")
    (drive-await "end of the answer" (lambda () (= (1+ i) (1- (length (split-string (drive-text) "the end of it"))))))
    (drive-await-idle))
  (unless (string-match-p "\\`eca sent a message that the plugin cannot use[^\n]*\n[^\n]*M-x eca-restart\\.\n\\'" bad-warnings)
    (drive-fail "the warnings are %s" bad-warnings))
  (setq bad-warnings "")
  (bad-stop))

(drive-step "a server that does not answer a prompt, and one that is killed in mid-turn"
  (bad-start-chat (getenv "BAD_DAEMON") "mute")
  (drive-type "hello")
  (drive-await "turn" (lambda () (buffer-local-value 'eca-chat--chat-loading (drive-chat))))
  (let ((chat (drive-chat)))
    (signal-process (eca--session-process (drive-session)) 'SIGKILL)
    (bad-expect-warning "killed" "M-x eca-chat-resume")
    (when (buffer-local-value 'eca-chat--chat-loading chat) (drive-fail "the turn never ends"))))

(drive-step "no provider"
  (let ((process-environment (cons "OPENAI_API_KEY" process-environment)))
    (bad-start-chat (getenv "DRIVE_SERVER") "server")
    (drive-await-text "/login")
    (drive-type "hello")
    (drive-await-text "No available model found")
    (drive-await-idle)
    (bad-stop)))

(drive-step "what a model writes does nothing"
  (bad-start-chat (getenv "DRIVE_SERVER") "server")
  (let ((opened nil))
    (cl-letf (((symbol-function 'browse-url) (lambda (url &rest _) (push url opened)))
              ((symbol-function 'url-retrieve) (lambda (url &rest _) (push url opened))))
      (drive-type "hostile")
      (drive-await-text "the end of it")
      (drive-await-idle))
    (when opened (drive-fail "it opened %S" opened)))
  (drive-expect "<script>alert(1)</script>")
  (drive-expect "\e\\[31mred")
  (drive-in-chat
   (let ((at (point-min)))
     (while (setq at (next-single-property-change at 'display))
       (when (eq 'image (car-safe (get-text-property at 'display))) (drive-fail "an image is shown"))))
   (unless (< (window-width) 50) (drive-fail "the window is not narrow"))
   (when (or truncate-lines (truncated-partial-width-window-p)) (drive-fail "a narrow window truncates lines")))
  (bad-stop))

(unless (equal "" bad-warnings) (drive-fail "warnings: %s" bad-warnings))
(princ "ALL IS WELL\n")

;;; bad.el ends here
