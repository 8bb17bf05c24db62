;;; eca-guard.el --- Reports what went wrong with eca -*- lexical-binding: t; -*-

;; Package-Requires: ((emacs "28.1") (eca "0"))

;;; Commentary:

;; An add-on for eca-emacs.  The plugin reports most failures of the server in the echo area only, or
;; not at all.  With this file, the *Warnings* buffer shows what happened and what to do: a missing
;; program, a server that exits, does not start or sends messages that the plugin cannot use.  One
;; such message no longer takes the other messages of the same read with it, and `eca-stop' ends a
;; server that does not answer.  Chats in narrow windows wrap long lines, so that a command that waits
;; for approval is visible to its end.
;;
;; It advises functions of the plugin and has no commands.  To use it, put its folder on `load-path':
;;
;;   (with-eval-after-load 'eca (require 'eca-guard))

;;; Code:

(require 'eca)

(defgroup eca-guard nil
  "Reports about failures of the ECA server."
  :group 'eca)

(defcustom eca-guard-start-timeout 30
  "Seconds after which a server that has not started is reported."
  :type 'number)

(defun eca-guard--warn (format &rest args)
  "Show FORMAT with ARGS in the *Warnings* buffer."
  (display-warning 'eca (apply #'format format args) :error))

(defun eca-guard--check-program (&rest _)
  "Signal an error if the program of `eca-custom-command' does not exist."
  (when-let* ((program (car eca-custom-command)))
    (unless (or (file-remote-p default-directory) (file-remote-p program) (executable-find program))
      (user-error "ECA: cannot find the program \"%s\": correct `eca-custom-command', or set it to nil if eca is on PATH" program))))

(defun eca-guard--last-words (buffer)
  "The last lines that the server has written to BUFFER."
  (if (not (buffer-live-p buffer))
      ""
    (with-current-buffer buffer
      (save-excursion
        (goto-char (point-max))
        (forward-line -6)
        (replace-regexp-in-string "^Process .* stderr .*\n?" "" (string-trim (buffer-substring-no-properties (point) (point-max))))))))

(defun eca-guard--ended (session errors process event)
  "Report that PROCESS of SESSION, which wrote to the buffer ERRORS, ended with EVENT."
  (unless (or (process-live-p process) (process-get process 'eca-guard-stopped))
    (dolist (chat (eca--session-chats session))
      (when (buffer-live-p (cdr chat))
        (with-current-buffer (cdr chat) (eca-chat--set-chat-loading session nil))))
    ;; Its last lines may arrive after its end.
    (run-at-time
     0.3 nil
     (lambda ()
       (eca-guard--warn "eca has ended: %s.%s\nThe chats are kept: M-x eca starts it again, then M-x eca-chat-resume opens a chat.  The log is in the buffer %s."
                        (string-trim event)
                        (let ((words (eca-guard--last-words errors))) (if (string-empty-p words) "" (concat "\n" words)))
                        (if (buffer-live-p errors) (buffer-name errors) "of its errors, which is closed"))))))

(defun eca-guard--watch (session)
  "Report if the server of SESSION ends, or does not start in time."
  (let ((process (eca--session-process session))
        (errors (get-buffer (eca-process--stderr-buffer-name session))))
    (add-function :after (process-sentinel process) (lambda (process event) (eca-guard--ended session errors process event)))
    (run-at-time
     eca-guard-start-timeout nil
     (lambda ()
       (when (and (process-live-p process) (eq 'starting (eca--session-status session)))
         (eca-guard--warn "eca did not answer within %s s.  Check `eca-custom-command' (%s) and M-x eca-show-stderr; M-x eca-restart starts it again."
                          eca-guard-start-timeout (string-join (process-command process) " ")))))))

(defun eca-guard--handle-message (handle session message)
  "Call HANDLE with SESSION and MESSAGE; report the first message that fails."
  (let ((process (eca--session-process session)))
    (condition-case err
        (let ((debug-on-error nil))
          (if (and (consp message) (keywordp (car message)))
              (funcall handle session message)
            (error "It is not a message of JSON-RPC")))
      (error
       (unless (process-get process 'eca-guard-reported)
         (process-put process 'eca-guard-reported t)
         (eca-guard--warn "eca sent a message that the plugin cannot use (%s): %s\nIf something is missing, run M-x eca-restart."
                          (or (ignore-errors (plist-get message :method)) "an answer") (error-message-string err)))))))

(defun eca-guard--stop-session (stop session)
  "Call STOP with SESSION, and end a server that does not answer."
  (let ((process (and session (eca--session-process session))))
    (when process (process-put process 'eca-guard-stopped t))
    (condition-case err
        (funcall stop session)
      (error
       (unless (process-live-p process) (signal (car err) (cdr err)))
       (eca-chat-exit session)
       (delete-process process) ; its sentinel forgets the session
       (eca-warn "eca did not answer and was ended")))))

(defun eca-guard--wrap-lines ()
  "Wrap long lines also in narrow windows, where Emacs truncates them by default."
  (setq-local truncate-lines nil
              truncate-partial-width-windows nil
              word-wrap t))

(add-hook 'eca-chat-mode-hook #'eca-guard--wrap-lines)
(advice-add 'eca-process-start :before #'eca-guard--check-program)
(advice-add 'eca--initialize :before #'eca-guard--watch)
(advice-add 'eca--handle-message :around #'eca-guard--handle-message)
(advice-add 'eca-stop-session :around #'eca-guard--stop-session)

(provide 'eca-guard)
;;; eca-guard.el ends here
