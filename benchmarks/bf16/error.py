import torch, numpy as np, retrodict as rd, warnings
warnings.simplefilter("ignore"); torch.set_num_threads(1)
def bf(x): return x.to(torch.bfloat16).to(x.dtype)
def product(kind):
    def go(h,U):
        if kind in("fp64","fp32"): return h@U
        hh,uh=bf(h),bf(U)
        if kind=="bf16": return hh@uh
        hl,ul=bf(h-hh),bf(U-uh)
        if kind=="bf16, weights in two": return hh@uh+hh@ul
        out=hh@uh+hh@ul+hl@uh
        if kind=="bf16 x 3": return out
        h3,u3=bf(h-hh-hl),bf(U-uh-ul)
        return out+hl@ul+hh@u3+h3@uh
    return go
x,w=np.polynomial.legendre.leggauss(8); x=(x+1)/2; w=w/2
def loglik(m, s, kind):
    dt=torch.float64 if kind=="fp64" else torch.float32
    f=product(kind); l=m.lstm; D=l.hidden_size
    tab=(l.bias+l.by_type).to(dt); U=l.by_hidden.to(dt); V=m.readout.to(dt); sc=m.log_scale.to(dt).exp(); ts=float(m.time_scale)
    c=torch.zeros(D,dtype=dt); tg=c.clone(); h=c.clone(); dec=c.clone(); o=c.clone(); last=0.; total=0.
    types=[m.num_types]+s.types.tolist(); times=[0.]+s.times.tolist(); end=s.end
    for i,(k,t) in enumerate(zip(types,times)):
        if i:
            e=torch.tensor((t-last)/ts,dtype=dt); c=tg+(c-tg)*torch.exp(-dec*e); h=o*torch.tanh(c)
            lam=sc*torch.nn.functional.softplus(V@h/sc); total+=float(m.start_atom.log_probs[1+k]) if t==0 and i==1 and m.start_atom is not None else float(lam[k].double().log()-np.log(ts))
        g=tab[k]+f(h[None],U)[0]; six,dl=g[:6*D],g[6*D:]
        a,b_,oo,ib,fb,z=torch.sigmoid(six).chunk(6); z=2*z-1
        c,tg,dec,o=b_*c+a*z, fb*tg+ib*z, torch.nn.functional.softplus(dl), oo
        last=t; nxt=times[i+1] if i+1<len(times) else end
        L=(nxt-t)/ts
        e=torch.tensor(x*L,dtype=dt)
        H=o*torch.tanh(tg+(c-tg)*torch.exp(-dec*e[:,None])); lam=(sc*torch.nn.functional.softplus(H@V.t()/sc)).sum(1)
        total-=float((lam.double().numpy()*w).sum()*L)
    return total + (float(m.start_atom.log_probs[0]) if m.start_atom is not None and not (len(times)>1 and times[1]==0) else 0)
with torch.no_grad():
    s=rd.load_proposal("src/retrodict/datasets/flights_smoother"); m=s.model
    st=rd.simulate(m,25,end=600.,seed=9); print("events a stream",st.num_events/25)
    ref=np.array([loglik(m,q,"fp64") for q in st])
    lib=m.log_likelihood(st,integral=rd.GaussLegendre(8)).detach().numpy(); print("check against the package", abs(ref-lib).max())
    for k in ("fp32","bf16","bf16, weights in two","bf16 x 3","bf16 x 6"):
        e=np.array([loglik(m,q,k) for q in st])-ref; print(k,"rms %.1e max %.1e"%(np.sqrt((e**2).mean()),abs(e).max()))
