(* let no = 1 (* nested *) *)
open Core
exception Not_found of string
type 'a tree = Leaf | Node of 'a tree * 'a
and color = Red | Green
type ('k, 'v) map = ('k * 'v) list
module type Shape = sig
  type t
  val area : t -> float
end
module Shop = struct
  let limit = 10
  let rec sell ~item ?(n = 1) x =
    let local = 2 in
    let inner y = y in
    local
  and buy x = x
  module Inner = struct
    let deep () = 'a'
  end
end
module M = Map.Make(String)
let ( + ) a b = a
let main () = print_string "let no = 1"
let f = fun x -> x
let g = function Some x -> x | None -> 0
let constant : int = 3
let _ = main ()
let () = main ()
external raw : int -> int = "c_raw"
class point x = object
  val mutable y = x
  method get = y
  method move dx = y <- y + dx
end
let s = {sql|let no = 1|sql}
let after 'x' = 1

(* Both the signature and the body of a module tell. *)
module Both : sig
  val shown : int
end = struct
  let shown = 1

  include struct
    let included x = x
  end
end

let ( let+ ) x f = f x
