(ns shop.forms)

(def key-a 65) (def key-b 66)

(defn ^java.io.File file [path] path)

(defmethod clojure.test/report :pass [m] m)

#?(:cljs (def nodejs? true))
#?(:clj (defn refresh []
          :done)
   :cljs (defn refresh [] nil))

(deftest quoted
  (is (= 1 (run '(do
                   (def inner 1)
                   inner)))))
