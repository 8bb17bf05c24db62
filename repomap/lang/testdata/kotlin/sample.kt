package com.shop
import a.b.c
@Entity
data class Item(val id: String, var price: Int = 3) : Base(id), Sellable {
    companion object {
        const val LIMIT = 10
        fun create(): Item = Item("x")
    }
    val total: Int
        get() { val hidden = 1; return hidden }
    private lateinit var name: String
    override suspend fun <T : Any> sell(item: T, block: (T) -> Unit = {}): Result<T> where T : Foo {
        fun local() {}
        val x = "text ${items["a"]?.let { "b" }} fun no() {"
        return run { object : Foo { fun inner() {} } }
    }
    inner class Deep { fun run() = 1 }
    init { val y = 1 }
}
sealed interface Node
enum class Color(val code: Int) { RED(1) { override fun x() = 1 }; abstract fun x(): Int }
object Registry : Base() { fun find(name: String) = map[name] }
fun <T> List<T>.second(): T = this[1]
val String.shout: String get() = uppercase()
typealias Handler = (String) -> Unit
fun main(args: Array<String>) { println(Item::class) }
const val TOP = """ fun no() { """
fun interface Op { fun apply(x: Int): Int }
annotation class Marker
abstract class Shape { abstract fun area(): Double; open fun name() = "s" }

fun `a name with spaces`() {}
