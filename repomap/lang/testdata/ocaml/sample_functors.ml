module Store : Make =
functor
  (Key : Type.S)
  (Value : Type.S)
  ->
  struct
    type t = Key.t

    let find t = S.find t

    module Inner = struct
      let set t =
        let* () = S.set t in
        t
    end
  end

module Plain (S : X) = struct
  open struct
    module P = S.Path
  end

  include Io (struct
    let magic = "x"
  end)

  let check t =
    let* heads = S.heads t in
    let hashes = S.hashes heads in
    hashes
end
