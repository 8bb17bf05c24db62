package com.shop;
import java.util.*;
/** class NotThis {} */
@Entity(name = "x")
public abstract class Shop<T extends Comparable<T>> extends Base<T> implements A, B {
    private static final int LIMIT = compute(3);
    private final Map<String, List<T>> items = new HashMap<>() {{ put("a", null); }};
    static { init(); }
    public Shop(String name) throws IOException { this.name = name; }
    @Override
    @SuppressWarnings({"a", "b"})
    public <K> List<K> sell(final T item, int... rest) {
        class Local { void no() {} }
        Runnable r = () -> { int x; };
        return new ArrayList<K>() { public int size() { return 0; } };
    }
    abstract void area();
    protected native int[] raw(byte[] b);
    interface Visitor { void visit(Shop s); default int twice() { return 2; } }
    enum Color { RED { int code() { return 1; } }, GREEN(2); private int c; int code() { return c; } }
    String text = """
        void hidden() {
        """;
    char c = '{';
}
record Point(int x, int y) implements A { int sum() { return x + y; } }
sealed interface Node permits Leaf {}
@interface Marker { String value() default "x"; }
enum Plain { A, B }
