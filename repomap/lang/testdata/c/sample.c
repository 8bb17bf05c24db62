#include <stdio.h>
#define LIMIT 10
#define MAX(a, b) \
	((a) > (b) ? (a) : (b))
#ifdef A
static int twice(int x) {
#else
static long twice(long x) {
#endif
	return x * 2;
}

struct point { int x, y; };
typedef struct node {
	struct node *next;
	int (*visit)(struct node *);
} Node, *NodePtr;
typedef int (*callback_t)(void *ctx, int);
typedef unsigned long ulong_t;
enum color { RED, GREEN = 2 };
union u { int a; char b; };
static const char *names[] = { "a{", 'b', foo(1) };
int global = 3;
int prototype(int a, const char *b);
extern struct point *make_point(int x);
struct point *
make_point(int x)
{
	if (x) { return 0; }
	char c = '{';
	return prototype(1, "}");
}
static __attribute__((noinline)) void hidden(void) { }
MODULE_LICENSE("GPL");
int (*fp)(int);
int main(int argc, char **argv) { for (;;) {} }
