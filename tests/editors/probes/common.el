;;; common.el --- what the probes of Emacs share  -*- lexical-binding: t; -*-
;; Writes what is seen to $FUNES_PROBE_OUT, one JSON object a line; the tests judge it.

(require 'json)
(require 'seq)

(defconst probe-query (getenv "FUNES_PROBE_QUERY"))
(defconst probe-title (getenv "FUNES_PROBE_TITLE"))

(defun probe-tell (name value)
  "Write down VALUE under NAME."
  (let ((json-false :json-false) (coding-system-for-write 'utf-8))
    (write-region (concat (json-encode (list :name name :value value)) "\n")
                  nil (getenv "FUNES_PROBE_OUT") t 'silent)))

(defmacro probe-step (name &rest body)
  "Tell under NAME what BODY returns; what goes wrong does not keep later steps from running."
  (declare (indent 1))
  `(probe-tell ,name (condition-case err (progn ,@body)
                       (error (list :failed (format "%S" err))))))

(defun probe-wait (what &optional seconds)
  "Return the first value of function WHAT that is not nil, asked for SECONDS."
  (let ((ends (+ (float-time) (or seconds 20))) found)
    (while (and (not (setq found (funcall what))) (< (float-time) ends))
      (accept-process-output nil 0.02)
      (sit-for 0.01))
    found))

(defun probe-to-word (word)
  "Go to the first WORD of the buffer."
  (goto-char (point-min))
  (search-forward word))

(defun probe-uri (answer)
  "Return the address in ANSWER, which is a table or a list by client."
  (if (hash-table-p answer) (gethash "uri" answer) (plist-get answer :uri)))

(defun probe-definition (ask)
  "Go from the list of a file's sessions to a turn; ASK sends a request and returns its answer.
What these clients cannot do by themselves is asked for, and what is opened are real files."
  (let* ((about (vector (list :uri (concat "file://" buffer-file-name))))
         (command (list :command "funes.showRelated" :arguments about))
         (list-uri (probe-uri (funcall ask "workspace/executeCommand" command)))
         (line (with-current-buffer (find-file-noselect (substring list-uri (length "file://")))
                 (goto-char (point-min))
                 (re-search-forward "^→ funes get")
                 (1- (line-number-at-pos))))
         (place (funcall ask "textDocument/definition"
                         (list :textDocument (list :uri list-uri)
                               :position (list :line line :character 0)))))
    (with-current-buffer (find-file-noselect
                          (substring (probe-uri place) (length "file://")))
      (probe-opened))))

(defun probe-opened ()
  "Describe the buffer that is shown."
  (list :name (or buffer-file-name (buffer-name))
        :lines (vconcat (seq-take (split-string (buffer-substring-no-properties
                                                 (point-min) (point-max)) "\n") 40))
        :writable (if (and buffer-file-name (zerop (logand #o222 (file-modes buffer-file-name))))
                      0 1)
        :readonly (if buffer-read-only t :json-false)))

(provide 'common)
;;; common.el ends here
