// Types that get their names by typedef and using.
typedef struct { int x; } Point, *PointPtr;
typedef class Widget { public: void draw(); } WidgetAlias;
typedef enum class Color : int { Red } ColorAlias;
typedef std::map<std::string, std::vector<int>> Index, *IndexPtr;
typedef void (Widget::*Method)(int);
typedef typename Base<T>::value_type value_type;
typedef Outer::Inner Inner;
typedef int (&Reference)[3];
using Callback = void (*)(int);
using Anonymous = struct { int x; };
template <typename T> using List = std::vector<T>;
class Holder {
  typedef int size_type;
  typedef struct { int n; } Node, *Link;
  using Ptr = Holder *;
};
typedef decltype(nullptr) Null;
