;;; Drives eglot in `emacs --batch' for test_emacs.py.  -*- lexical-binding: t -*-
;; Arguments behind `--': the file, the instruction, what is done meanwhile ("type", "cancel" or ""), what the user
;; answers when eglot asks ("yes", "no" or "unasked"), then the server's command.  Prints what came of it as JSON.
;; Idle timers do not run in batch mode: `settle' tells the server of changes after half a second, as eglot's would.

(require 'cl-lib)
(require 'json)
(require 'eglot)

(defvar driver-shown nil "What the server had shown, the latest first.")
(defvar driver-asked 0 "How often the user was asked for an edit.")
(defvar driver-edits 0 "How many edits were made.")
(defvar driver-answer nil)
(defvar driver-changed nil "When the buffer was changed last.")

(setq eglot-sync-connect 30
      eglot-connect-timeout 60
      eglot-events-buffer-size 0
      eglot-autoshutdown nil
      create-lockfiles nil
      make-backup-files nil)

(cl-defmethod eglot-handle-notification :before
  (_server (_method (eql window/showMessage)) &key message &allow-other-keys)
  (push message driver-shown))

(defun y-or-n-p (_prompt)
  (cl-incf driver-asked)
  driver-answer)

(advice-add 'eglot--apply-text-edits :after (lambda (&rest _) (cl-incf driver-edits)))

(defun settle (seconds until)
  "Let the server talk until UNTIL holds, SECONDS at most."
  (let ((end (+ (float-time) seconds)))
    (while (and (< (float-time) end) (not (funcall until)))
      (accept-process-output nil 0.05)
      (when (and driver-changed (> (- (float-time) driver-changed) 0.5))
        (setq driver-changed nil)
        (eglot--signal-textDocument/didChange)))))

(defun execute (command arguments)
  (let ((server (eglot-current-server)))
    (if (fboundp 'eglot-execute-command)
        (eglot-execute-command server command arguments)
      (eglot-execute server (list :command command :arguments arguments)))))

(pcase-let* ((`(,file ,instruction ,meanwhile ,answer . ,command) (cdr command-line-args-left))
             (confirm (not (equal answer "unasked"))))
  (setq command-line-args-left nil
        driver-answer (equal answer "yes")
        eglot-confirm-server-initiated-edits (and confirm 'confirm)
        eglot-confirm-server-edits confirm)
  (find-file file)
  (python-mode)
  (setq eglot-server-programs (list (cons 'python-mode command)))
  (apply #'eglot (eglot--guess-contact))
  (setq driver-changed nil)
  (add-hook 'after-change-functions (lambda (&rest _) (setq driver-changed (float-time))) nil t)
  (undo-boundary)
  (execute "specd.rewrite" (vector (list :uri (concat "file://" (buffer-file-name)) :instruction instruction)))
  (pcase meanwhile
    ("type"
     (settle 0.3 #'ignore)
     (save-excursion (goto-char (point-max)) (insert "# typed\n")))
    ("cancel"
     (settle 0.3 #'ignore)
     (execute "specd.cancel" (vector (make-hash-table)))
     ;; jsonrpc.el of Emacs 28 leaves what came in one piece with an answer unread until more comes
     (settle 1 (lambda () driver-shown))
     (execute "specd.cancel" (vector (make-hash-table)))))
  (settle 30 (lambda () driver-shown))
  (settle 1.5 #'ignore)
  (let ((text (buffer-substring-no-properties (point-min) (point-max)))
        (modified (buffer-modified-p))
        (undone nil))
    (when (and modified (equal meanwhile ""))
      (undo-boundary)
      (undo)
      (setq undone (buffer-substring-no-properties (point-min) (point-max))))
    (princ (json-encode (list :text text :undone undone :modified (if modified t :json-false)
                              :shown (vconcat (reverse driver-shown)) :asked driver-asked :edits driver-edits))))
  (set-buffer-modified-p nil)
  (ignore-errors (eglot-shutdown (eglot-current-server) nil 5)))
