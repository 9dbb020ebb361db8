// g++ -O3 -std=c++17 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512bf16 benchmarks/bf16/products.cpp -o products && ./products
#include <immintrin.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cstring>
#include <algorithm>
#include <ctime>
#include <tuple>
static double now(){ timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&t); return t.tv_sec+1e-9*t.tv_nsec; }
constexpr int R=14;
template<int R> __attribute__((noinline)) void f32(const float*a,int lda,const float*b,int D,float*o,int ldo){
  __m512 s[R][2]; for(int r=0;r<R;r++) s[r][0]=s[r][1]=_mm512_setzero_ps();
  for(int d=0;d<D;d++,b+=32){ __m512 x=_mm512_load_ps(b),y=_mm512_load_ps(b+16);
#pragma GCC unroll 14
   for(int r=0;r<R;r++){ __m512 v=_mm512_set1_ps(a[r*lda+d]); s[r][0]=_mm512_fmadd_ps(v,x,s[r][0]); s[r][1]=_mm512_fmadd_ps(v,y,s[r][1]); } }
  for(int r=0;r<R;r++){ _mm512_store_ps(o+r*ldo,s[r][0]); _mm512_store_ps(o+r*ldo+16,s[r][1]); } }
template<int R> __attribute__((noinline)) void b16(const int*a,int lda,const int*b,int D2,float*o,int ldo){
  __m512 s[R][2]; for(int r=0;r<R;r++) s[r][0]=s[r][1]=_mm512_setzero_ps();
  for(int d=0;d<D2;d++,b+=32){ __m512bh x=(__m512bh)_mm512_load_si512(b),y=(__m512bh)_mm512_load_si512(b+16);
#pragma GCC unroll 14
   for(int r=0;r<R;r++){ __m512bh v=(__m512bh)_mm512_set1_epi32(a[r*lda+d]); s[r][0]=_mm512_dpbf16_ps(s[r][0],v,x); s[r][1]=_mm512_dpbf16_ps(s[r][1],v,y);} }
  for(int r=0;r<R;r++){ _mm512_store_ps(o+r*ldo,s[r][0]); _mm512_store_ps(o+r*ldo+16,s[r][1]); } }
int main(){
 int shapes[4][3]={{56,256,1792},{84,256,256},{84,64,64},{56,64,448}}; for(auto&q:shapes){
  int rows=q[0],D=q[1],C=q[2]; float*a=(float*)aligned_alloc(64,rows*D*4),*b=(float*)aligned_alloc(64,(size_t)D*C*4),*o=(float*)aligned_alloc(64,(size_t)rows*C*4);
  for(int i=0;i<rows*D;i++)a[i]=1e-3f*(i%97); for(size_t i=0;i<(size_t)D*C;i++)b[i]=1e-3f*(i%89);
  int*ai=(int*)aligned_alloc(64,rows*D*2+64),*bi=(int*)aligned_alloc(64,(size_t)D*C*2);
  memset(ai,0x3c,rows*D*2); memset(bi,0x3c,(size_t)D*C*2);
  double t32=1e9,t16=1e9,tc=1e9; int many=std::max(1,(int)(4e8/((double)rows*D*C)));
  for(int rep=0;rep<15;rep++){
   double t=now(); for(int m=0;m<many;m++) for(int c=0;c<C;c+=32) for(int r=0;r<rows;r+=R) f32<R>(a+r*D,D,b+(size_t)c*D,D,o+r*C+c,C); t32=std::min(t32,(now()-t)/many);
   t=now(); for(int m=0;m<many;m++){ for(int c=0;c<C;c+=32) for(int r=0;r<rows;r+=R) b16<R>(ai+r*D/2,D/2,bi+(size_t)c*D/2,D/2,o+r*C+c,C);} t16=std::min(t16,(now()-t)/many);
   t=now(); for(int m=0;m<many;m++){ for(int i=0;i<rows*D;i+=16) _mm256_store_si256((__m256i*)((short*)ai+i),(__m256i)_mm512_cvtneps_pbh(_mm512_load_ps(a+i))); asm volatile("":::"memory"); } tc=std::min(tc,(now()-t)/many);
  }
  printf("%dx%dx%d: fp32 %.1f us (%.0f GMAC/s), bf16 %.1f us (%.2f times as fast), rounding %.2f us\n",rows,D,C,1e6*t32,1e-9*rows*D*C/t32,1e6*t16,t32/t16,1e6*tc);
 }}
