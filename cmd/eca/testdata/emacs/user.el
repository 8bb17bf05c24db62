;;; user.el --- What a person does in Emacs -*- lexical-binding: t; -*-

;; For scripts in `emacs --batch'.  The environment says where the plugin is (ECA_EMACS), which
;; program is the server (DRIVE_SERVER), and which file is open (DRIVE_FILE).  Nothing is
;; waited for by time: each step awaits what it should show, and the first that does not
;; come ends the run with what stands in the chat instead.

;;; Code:

(setq native-comp-deferred-compilation nil
      load-prefer-newer t
      make-backup-files nil
      create-lockfiles nil)
(package-initialize)
(add-to-list 'load-path (getenv "ECA_EMACS"))
(require 'eca)
(setq eca-custom-command (list (getenv "DRIVE_SERVER") "server")
      eca-chat-auto-add-cursor nil
      eca-api-response-timeout 120)

(defvar drive-patience 180
  "Seconds after which something that was awaited does not come any more.")

(defvar drive-step "the start"
  "What is being done.")

(defvar drive-file (find-file-noselect (getenv "DRIVE_FILE"))
  "The file that is open.")

(defun drive-session ()
  "The session of the file that is open."
  (with-current-buffer drive-file (eca-session)))

(defun drive-chat ()
  "The chat that is shown last."
  (eca--session-last-chat-buffer (drive-session)))

(defun drive-text ()
  "What the chat shows."
  (let ((buffer (and (drive-session) (drive-chat))))
    (if (buffer-live-p buffer)
        (with-current-buffer buffer (buffer-substring-no-properties (point-min) (point-max)))
      "")))

(defun drive-fail (format &rest args)
  "End the run with FORMAT and ARGS as the reason."
  (princ (format "FAILED at %s: %s\n--- the chat\n%s\n" drive-step (apply #'format format args) (drive-text)))
  (dolist (buffer (buffer-list))
    (when (string-match-p "emacs-errors\\|eca:stderr\\|Warnings" (buffer-name buffer))
      (princ (format "--- %s\n%s\n" (buffer-name buffer) (with-current-buffer buffer (buffer-string))))))
  (kill-emacs 1))

(defun drive-await (what condition)
  "Wait for WHAT, which is when CONDITION returns non-nil; return that."
  (let ((deadline (+ (float-time) drive-patience)) result)
    (while (not (setq result (funcall condition)))
      (when (> (float-time) deadline)
        (drive-fail "no %s; jobs: %S" what (and (drive-session) (eca--session-jobs (drive-session)))))
      (accept-process-output nil 0.05))
    result))

(defun drive-await-text (regexp)
  "Wait until the chat shows REGEXP."
  (drive-await regexp (lambda () (string-match-p regexp (drive-text)))))

(defun drive-await-idle ()
  "Wait until the chat has nothing to do."
  (drive-await "end of the turn"
               (lambda () (not (buffer-local-value 'eca-chat--chat-loading (drive-chat))))))

(defun drive-expect (regexp)
  "The chat must show REGEXP now."
  (unless (string-match-p regexp (drive-text)) (drive-fail "the chat does not show %s" regexp)))

(defmacro drive-in-chat (&rest body)
  "Evaluate BODY where the user is: in the chat."
  `(progn (set-window-buffer (selected-window) (drive-chat))
          (with-current-buffer (drive-chat) ,@body)))

(defun drive-type (text)
  "Type TEXT at the end of the chat, and the key return."
  (drive-in-chat
   (goto-char (point-max))
   (insert text)
   (call-interactively (key-binding (kbd "RET")))))

(defmacro drive-step (name &rest body)
  "Do BODY, which is called NAME."
  (declare (indent 1))
  `(condition-case err
       (progn (setq drive-step ,name) ,@body (princ (format "ok %s\n" ,name)))
     (error (drive-fail "%s" (error-message-string err)))))

(defmacro drive-choosing (regexp &rest body)
  "Evaluate BODY with the first choice that matches REGEXP taken wherever one is asked for."
  (declare (indent 1))
  `(cl-letf (((symbol-function 'completing-read)
              (lambda (_prompt collection &rest _)
                (or (seq-find (lambda (c) (string-match-p ,regexp c)) (all-completions "" collection))
                    (drive-fail "none of %S is %s" (all-completions "" collection) ,regexp)))))
     ,@body))

(defun drive-beside (name)
  "The file NAME beside the one that is open."
  (expand-file-name name (file-name-directory (getenv "DRIVE_FILE"))))

(defun drive-start ()
  "Start eca and await that it can be used."
  (with-current-buffer drive-file (eca))
  (drive-await "start" (lambda () (and (drive-session)
                                       (eq 'started (eca--session-status (drive-session)))
                                       (buffer-live-p (drive-chat)))))
  (drive-await "models" (lambda () (> (length (eca--session-models (drive-session))) 0)))
  (drive-await "native tools" (lambda () (eca-get (eca--session-tool-servers (drive-session)) "ECA"))))

(provide 'user)

;;; user.el ends here
