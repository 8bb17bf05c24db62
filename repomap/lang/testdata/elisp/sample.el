;;; shop.el --- (defun no ())  -*- lexical-binding: t -*-
(require 'cl-lib)
(defgroup shop nil "Docs." :group 'tools)
(defcustom shop-limit 10
  "Docs with \"(defun no ())\"."
  :type 'integer)
(defvar shop--state nil)
(defconst shop-max 3)
(defun shop-sell (item &optional n)
  "Sell ITEM."
  (interactive "P")
  (let ((c ?\") (d ?\() (e ?\;))
    (lambda (x) x)))
(defmacro shop-with (var &rest body)
  `(let ((,var 1)) ,@body))
(cl-defstruct (shop-item (:constructor shop-new)) name price)
(cl-defmethod shop-price ((i shop-item)) 1)
(define-minor-mode shop-mode "Docs.")
(defalias 'shop-buy #'shop-sell)
(defsubst shop-inline () 1)
(eval-when-compile
  (defun shop-nested () 1))
(provide 'shop)

(defvar elsewhere)
(transient-define-suffix shop-suffix () nil)
