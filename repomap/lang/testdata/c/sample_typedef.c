/* Types that get their names by typedef, in all forms. */
typedef struct { int x, y; } Point;
typedef struct vec { float v[3]; } Vec, *VecPtr;
typedef struct { char text[8]; } Label, *LabelPtr, LabelList[4];
typedef struct later Later;
typedef enum { NORTH, SOUTH } Direction;
typedef enum weekday { MON, TUE } Weekday;
typedef enum weekday Day;
typedef union { int i; float f; } Number;
typedef union value { int i; } Value;
typedef struct __attribute__((packed)) header { int len; } Header;
typedef struct { int len; } __attribute__((packed)) Packed;
typedef struct { int len; } Trailing __attribute__((aligned(8)));
typedef struct { int a; } __packed First;
typedef struct { int a; } Second __packed;
typedef struct { int a; } Third PACKED;
typedef struct { int a; } Fourth ALIGNED(8);
typedef struct
{
	struct { int deep; } inner;
	int (*visit)(void *);
}
Spread;
typedef int Matrix[3][4];
typedef char *Strings[];
typedef int Simple, *Pointer, Array[2], (*Callback)(int);
typedef const unsigned long *ConstPtr;
typedef void (*Handler)(int, void *);
typedef void (*HandlerList[8])(int);
typedef int (*(*Factory)(int))(char);
typedef int Function(int, int);
typedef Point (Parenthesised)(int);
typedef int HANDLER(int);
typedef Point HOOK(int);
typedef int (WINAPI *WinCallback)(int);
typedef int aligned_int ALIGNED(8);
typedef int attr_int __attribute__((mode(SI)));
typedef struct vec *(*Maker)(void);
typedef struct { int r; } (*MakerOfUnnamed)(void);
__extension__ typedef struct { long long q; } Quot;
typedef __typeof__(sizeof(0)) Size;
struct { int hidden; } variable;
enum { ANON_A, ANON_B };
typedef struct { int unfinished; }
