package shop

class Builder
  @JvmOverloads
  constructor(
    boundary: String = "",
  ) {
    private val parts = mutableListOf<Part>()

    fun build(): Body = Body(parts)
  }

class Plain
  internal constructor(val x: Int) : Base(x) {
    fun run() {}
  }

abstract class Second {
  abstract fun a(): Int

  constructor(x: Int) {
    val local = x
  }
}
