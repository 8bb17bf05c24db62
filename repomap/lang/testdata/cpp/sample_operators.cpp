long double operator ""_km(long double x) { return x; }
unsigned long operator"" _bytes(unsigned long x);
inline namespace literals { constexpr auto operator""s(const char* s, size_t n) { return 1; } }
struct __attribute__((packed)) packed { int a; void reset(); };
class __declspec(dllexport) Exported { void run(); };
struct alignas(16) Aligned { };
class [[nodiscard]] API_EXPORT(1) Visible : public Base { void show(); };
template <typename T> concept Small = sizeof(T) < 8;
struct Value {
  operator std::string() const;
  explicit operator bool() const;
  operator const char*() const;
  auto operator<=>(const Value&) const = default;
  bool operator()(int) const;
  void* operator new(size_t);
};
Value::operator std::string() const { return ""; }
int last(int x) { return x; }
