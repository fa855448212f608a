;;; eglot.el --- drives eglot against the language server  -*- lexical-binding: t; -*-
;; Loaded after the configuration of docs/editors.md; $FUNES_PROBE_FILE is the file to open.

(package-initialize)
(load (expand-file-name "common.el" (file-name-directory load-file-name)))
(load (getenv "FUNES_PROBE_INIT"))
(require 'eglot)
(setq eglot-sync-connect 30
      eglot-connect-timeout 30
      eglot-confirm-server-initiated-edits nil)

(probe-tell "version"
            (format "emacs %s, eglot %s" emacs-version
                    (let ((found (cadr (assq 'eglot package-alist))))
                      (if found (package-version-join (package-desc-version found)) "builtin"))))

(find-file (getenv "FUNES_PROBE_FILE"))
(unless (eglot-current-server)
  (call-interactively #'eglot))
(defvar probe-server (probe-wait #'eglot-current-server))
(defvar probe-kinds nil)

(defun probe-ask (method params)
  "Return what METHOD with PARAMS gives, as the client library hands it over."
  (condition-case err
      (list :result (jsonrpc-request probe-server method params :timeout 30))
    (jsonrpc-error
     (list :error (list :code (alist-get 'jsonrpc-error-code (cdr err))
                        :message (alist-get 'jsonrpc-error-message (cdr err)))))))

(defun probe-eldoc ()
  "Return what eglot gives eldoc to show at point."
  (let (got)
    (eglot-hover-eldoc-function (lambda (text &rest _) (setq got text)))
    (probe-wait (lambda () got))
    (and got (vconcat (split-string (substring-no-properties got) "\n")))))

(defun probe-names-of-candidates ()
  "Return the symbols eglot's xref finds for the title of a session."
  (vconcat (mapcar #'xref-item-summary
                   (xref-backend-apropos 'eglot probe-title))))

(probe-step "recall" (probe-ask :funes/recall (list :query probe-query :k 3)))
(probe-step "command_recall"
  (funes-recall probe-query)
  (with-current-buffer "*funes recall*" (buffer-substring-no-properties (point-min) (point-max))))
(probe-step "recall_bad" (probe-ask :funes/recall '(:query 5)))
(probe-step "status" (probe-ask :funes/status eglot--{}))
(probe-step "hover" (probe-to-word (getenv "FUNES_PROBE_KNOWN")) (probe-eldoc))
(probe-step "lenses"
  (probe-ask :textDocument/codeLens (list :textDocument (eglot--TextDocumentIdentifier))))
(probe-step "lens_titles"
  (let ((lens (aref (plist-get (probe-ask :textDocument/codeLens
                                          (list :textDocument (eglot--TextDocumentIdentifier)))
                               :result)
                    0)))
    (vector (plist-get (plist-get (plist-get (probe-ask :codeLens/resolve lens) :result) :command)
                       :title))))
(probe-step "symbols" (probe-names-of-candidates))
(probe-step "actions"
  (probe-to-word "def get")
  (list :result (vconcat (eglot-code-actions (line-beginning-position) (point)))))
(probe-step "definition"
  (probe-definition (lambda (method params)
                      (jsonrpc-request probe-server (intern (concat ":" method)) params))))
(probe-step "symbol_opened"
  (with-current-buffer (marker-buffer (xref-location-marker
                                       (xref-item-location
                                        (car (xref-backend-apropos 'eglot probe-title)))))
    (probe-opened)))
;; This client shows no progress itself: the request carries a token, and what is told is kept.
(cl-defmethod eglot-handle-notification (_server (_method (eql $/progress)) &key token value
                                                 &allow-other-keys)
  "Keep what is told of progress."
  (push (list :token token :kind (plist-get value :kind)) probe-kinds))
(probe-step "index" (probe-ask :funes/index '(:workDoneToken "probe-index")))
(probe-step "progress"
  (probe-wait (lambda () (equal "end" (plist-get (car probe-kinds) :kind))) 10)
  (vconcat (reverse probe-kinds)))
(probe-step "settings"
  (setq-default eglot-workspace-configuration '(:funes (:recall (:k 1))))
  (eglot-signal-didChangeConfiguration probe-server)
  (probe-wait
   (lambda ()
     (let ((hits (plist-get (plist-get (probe-ask :funes/recall (list :query probe-query)) :result)
                            :hits)))
       (and (= 1 (length hits)) (list :hits 1))))))
(probe-step "stopped"
  (let ((process (jsonrpc--process probe-server)))
    (eglot-shutdown probe-server)
    (if (probe-wait (lambda () (not (process-live-p process)))) t :json-false)))
(probe-tell "end" t)
;;; eglot.el ends here
