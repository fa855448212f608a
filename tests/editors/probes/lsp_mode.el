;;; lsp_mode.el --- drives lsp-mode against the language server  -*- lexical-binding: t; -*-
;; Loaded after the configuration of docs/editors.md; $FUNES_PROBE_FILE is the file to open.

(package-initialize)
(load (expand-file-name "common.el" (file-name-directory load-file-name)))
(require 'lsp-mode)
(require 'lsp-lens)
;; Nobody answers questions here, and nothing of the run is kept.
(setq lsp-auto-guess-root t
      lsp-warn-no-matched-clients nil
      lsp-enable-snippet nil
      lsp-restart 'ignore
      lsp-keep-workspace-alive nil
      lsp-session-file (make-temp-file "lsp-session")
      lsp-response-timeout 30
      lsp-lens-debounce-interval 0.01)
(load (getenv "FUNES_PROBE_INIT"))

(probe-tell "version"
            (format "emacs %s, lsp-mode %s" emacs-version
                    (package-version-join
                     (package-desc-version (cadr (assq 'lsp-mode package-alist))))))

(find-file (getenv "FUNES_PROBE_FILE"))
(lsp-workspace-folders-add (getenv "FUNES_PROBE_ROOT"))
(unless (bound-and-true-p lsp-mode)
  (lsp))
(defvar probe-workspace
  (probe-wait (lambda ()
                (seq-find (lambda (one) (eq 'initialized (lsp--workspace-status one)))
                          (lsp-workspaces)))))

(defun probe-ask (method params)
  "Return what METHOD with PARAMS gives; an error as the client library hands it over."
  (let (answer failed)
    (lsp-request-async method params
                       (lambda (it) (setq answer (list :result it)))
                       :mode 'detached
                       :error-handler (lambda (it) (setq failed (list :error it))))
    (probe-wait (lambda () (or answer failed)) 30)
    (or failed answer '(:failed "no answer"))))

(defun probe-lens-texts ()
  "Return the texts of the lenses that are shown."
  (let ((texts (delq nil (mapcar
                          (lambda (one)
                            (and (overlay-get one 'lsp-lens)
                                 (string-trim (substring-no-properties
                                               (or (overlay-get one 'before-string)
                                                   (overlay-get one 'after-string) "")))))
                          (overlays-in (point-min) (point-max))))))
    (and texts (seq-every-p (lambda (one) (string-match-p "[a-z0-9]" one)) texts)
         (vconcat texts))))

(probe-step "recall" (probe-ask "funes/recall" (list :query probe-query :k 3)))
(probe-step "recall_bad" (probe-ask "funes/recall" '(:query 5)))
(probe-step "status" (probe-ask "funes/status" nil))
(probe-step "hover"
  (probe-to-word (getenv "FUNES_PROBE_KNOWN"))
  (backward-char)                       ; nothing is asked for at the end of a line
  (setq lsp-hover-enabled t lsp-eldoc-enable-hover t lsp-eldoc-render-all t)
  (let (shown)
    (cl-letf (((symbol-function 'lsp--eldoc-message)
               (lambda (&optional text) (setq shown text))))
      (lsp-hover)
      (probe-wait (lambda () shown)))
    (and shown (vconcat (split-string (substring-no-properties shown) "\n")))))
(probe-step "lenses"
  (probe-ask "textDocument/codeLens" (list :textDocument (lsp--text-document-identifier))))
(probe-step "lens_titles"
  (lsp-lens-mode 1)
  (lsp-lens-refresh t)
  (probe-wait #'probe-lens-texts))
(probe-step "symbols"
  (vconcat (mapcar #'xref-item-summary (xref-backend-apropos 'xref-lsp probe-title))))
(probe-step "actions"
  (transient-mark-mode 1)
  (probe-to-word "def ")
  (push-mark (line-beginning-position) t t)
  (list :result (vconcat (lsp-code-actions-at-point))))
(probe-step "definition"
  (probe-definition (lambda (method params) (lsp-request method params))))
(defvar probe-kinds nil)
(setq lsp-progress-function
      (let ((shown (default-value 'lsp-progress-function)))
        (lambda (workspace params)
          (push (list :token (lsp-get params :token)
                      :kind (lsp-get (lsp-get params :value) :kind))
                probe-kinds)
          (funcall shown workspace params))))
(probe-step "index" (probe-ask "funes/index" nil))
(probe-step "progress"
  (probe-wait (lambda () (equal "end" (plist-get (car probe-kinds) :kind))) 10)
  (vconcat (reverse probe-kinds)))
(probe-step "settings"
  (lsp-register-custom-settings '(("funes.recall.k" 1)))
  (lsp--set-configuration (lsp-configuration-section "funes"))
  (probe-wait
   (lambda ()
     (let ((hits (lsp-get (plist-get (probe-ask "funes/recall" (list :query probe-query)) :result)
                          :hits)))
       (and (= 1 (length hits)) (list :hits 1))))))
(probe-step "stopped"
  (let ((process (lsp--workspace-cmd-proc probe-workspace)))
    (with-lsp-workspace probe-workspace (lsp--shutdown-workspace))
    (if (probe-wait (lambda () (not (process-live-p process)))) t :json-false)))
(probe-tell "end" t)
;;; lsp_mode.el ends here
