(ns shop.core
  (:require [clojure.string :as str]))
; (defn no [])
(def limit 10)
(defonce ^:private state (atom {}))
(defn sell
  "Docs (defn no [])"
  [item & {:keys [n]}]
  (let [local (fn [x] x)] \( \newline
    (str/join "," item)))
(defn- hidden? ([x] x) ([x y] y))
(defmacro when-open [& body] `(do ~@body))
(defprotocol Sell (price [this]))
(defrecord Item [name price] Sell (price [_] price))
(defmulti area :shape)
(defmethod area :circle [c] 1)
(comment
  (defn inside-comment [] 1))
#_(defn ignored [])
